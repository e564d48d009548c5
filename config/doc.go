// Package config reads the configuration file: strict TOML to plain data.
//
// Strict means that nothing in the file is passed over: an unknown key, a wrong
// type, a value out of range, a name given twice or a host that does not exist
// is a [Problem] with file, line, key and what is allowed, and all problems of
// a file come in one go. Only a syntax error ends the reading at once, since
// nothing after it can be trusted.
//
// The package starts no goroutine. [Load] reads the configuration file and the
// password files that it names, and nothing else; [Parse] does no I/O but
// through its [Sources]. The result is plain data that nobody else writes to:
// share it freely. The package knows no other package of the program; whoever
// wires the program maps these settings to what the parts want.
//
// Secrets are held in [Secret], which never prints itself, and no message of
// this package quotes the value of a secret.
package config
