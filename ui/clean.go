package ui

// Clean makes text that came from a host, a guest or a client harmless for a
// terminal: control characters, escape sequences and bidi controls are taken
// out, bad UTF-8 is replaced. For whoever prints such text outside the console.
func Clean(s string) string { return clean(s) }
