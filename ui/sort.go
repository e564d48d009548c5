package ui

import (
	"cmp"
	"slices"

	"virdeck/model"
)

// sortKey is what the proxy table is ordered by. Equal rows are in the natural
// order of their names.
type sortKey int

const (
	sortState sortKey = iota // worst first
	sortName
	sortAddress
	sortProbe // failing first, then slowest first
	sortRotation
	sortChange // latest change first
)

func sortKeys() []sortKey {
	return []sortKey{sortState, sortName, sortAddress, sortProbe, sortRotation, sortChange}
}

// word returns the name in the title of the table, and the key in the menu.
func (k sortKey) word() (name, key, what string) {
	switch k {
	case sortState:
		return "state", "s", "worst first"
	case sortName:
		return "name", "n", "p-2 before p-10"
	case sortAddress:
		return "address", "a", "by number"
	case sortProbe:
		return "probe", "p", "failing, then slowest"
	case sortRotation:
		return "rotation", "r", "out first"
	case sortChange:
		return "change", "c", "latest first"
	}
	return "?", "?", ""
}

// rank orders states by how much they need an operator.
func rank(s model.State) int {
	switch s {
	case model.StateFailed:
		return 0
	case model.StateDemoted:
		return 1
	case model.StateTransient:
		return 2
	case model.StateUnproven:
		return 3
	case model.StateProvisioning:
		return 4
	case model.StatePending:
		return 5
	case model.StateDeleting:
		return 6
	case model.StateDrained:
		return 7
	case model.StateReady:
		return 8
	}
	return 9
}

func sortRows(rows []row, key sortKey, reverse bool) {
	less := func(a, b row) int {
		c := compareBy(key, a.p, b.p)
		if reverse {
			c = -c
		}
		if c != 0 {
			return c
		}
		return compareNames(string(a.p.Spec.Name), string(b.p.Spec.Name))
	}
	slices.SortStableFunc(rows, less)
}

func compareBy(key sortKey, a, b *model.ProxyView) int {
	switch key {
	case sortState:
		return cmp.Compare(rank(a.State), rank(b.State))
	case sortName:
		return compareNames(string(a.Spec.Name), string(b.Spec.Name))
	case sortAddress:
		return a.Spec.EffectiveHost(a.IP).Compare(b.Spec.EffectiveHost(b.IP))
	case sortProbe:
		if a.Health.Last.Passed != b.Health.Last.Passed {
			return boolCompare(a.Health.Last.Passed, b.Health.Last.Passed)
		}
		return cmp.Compare(b.Health.Last.Took, a.Health.Last.Took)
	case sortRotation:
		return boolCompare(a.Health.InRotation, b.Health.InRotation)
	case sortChange:
		return b.Since.Compare(a.Since)
	}
	return 0
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareNames(a, b string) int {
	switch {
	case a == b:
		return 0
	case lessNatural(a, b):
		return -1
	}
	return 1
}
