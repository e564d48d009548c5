package pool

import "time"

// The waits between two tries.
const (
	firstWait   = 10 * time.Second
	longestWait = 30 * time.Minute
)

// NextTry returns when something that failed fails times in a row, the last
// time at last, is tried again: 10 seconds after the first failure, then twice
// as long each time, up to 30 minutes. With no failure that is at last. A member
// that is made and never gets ready has failed, too.
func NextTry(fails int, last time.Time) time.Time {
	if fails <= 0 {
		return last
	}
	wait := firstWait
	for range fails - 1 {
		if wait *= 2; wait >= longestWait {
			return last.Add(longestWait)
		}
	}
	return last.Add(wait)
}
