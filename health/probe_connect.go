package health

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"virdeck/model"
)

// probeConnect opens a tunnel (RFC 9110, 9.3.6) and asks the target through it.
func probeConnect(ctx context.Context, dial DialFunc, s Subject, t Target) model.ProbeResult {
	e, r := openHop(ctx, dial, s)
	if e == nil {
		return r
	}
	defer e.close()
	head := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: virdeck-probe\r\n", t.hostPort(), t.hostPort())
	if !s.Creds.Empty() {
		head += "Proxy-Authorization: " + authorization(s.Creds) + "\r\n"
	}
	if _, err := io.WriteString(e, head+"\r\n"); err != nil {
		return replyFault(ctx, "CONNECT", err)
	}
	resp, err := http.ReadResponse(e.r, &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: t.hostPort()}})
	if err != nil {
		return replyFault(ctx, "CONNECT", err)
	}
	// A 2xx answer to CONNECT has no body; what follows is the tunnel.
	if r, own := statusFault(resp); own {
		return r
	}
	if resp.StatusCode/100 != 2 {
		r := model.ProbeResult{Status: resp.StatusCode, Culprit: model.CulpritAnswer, Reason: fmt.Sprintf("status %d to CONNECT", resp.StatusCode)}
		return r
	}
	return askThrough(ctx, e, t)
}
