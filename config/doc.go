// Package config reads the configuration file: strict TOML to plain data.
//
// Strict means that nothing in the file is passed over: an unknown key, a wrong
// type, a value out of range, a name given twice or a host that does not exist
// is a [Problem] with file, line, key and what is allowed, and all problems of
// a file come in one go. Only a syntax error ends the reading at once, since
// nothing after it can be trusted.
//
// The package starts no goroutine. [Load] reads the configuration file and the
// files that it names (passwords, user-data, XML, base images), and nothing else;
// [Parse] does no I/O but through its [Sources]. The result is plain data that
// nobody else writes to: share it freely. Of the program's packages it knows model
// alone, for the templates and pools that it declares; whoever wires the program
// maps the other settings to what the parts want, and lends it the judgement of
// templates that only a provider has.
//
// A base image is identified by its SHA-256. Where the configuration declares it,
// the image is only looked at: it is compared when it is uploaded. Else it is read
// once, and once more when its length or time of change is another: a [Loader]
// remembers.
//
// [Diff] says in words what another configuration would change.
//
// Secrets are held in [Secret], which never prints itself, and no message of
// this package quotes the value of a secret.
package config
