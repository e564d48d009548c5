package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// A scenario is not played beside a demo that runs, and that is said.
func TestStatus_saysThatAScenarioIsNotPlayed(t *testing.T) {
	at(t, "")
	const story = "[[host]]\nname = \"big\"\n[[guest]]\nhost = \"big\"\nname = \"vm\"\ncount = 3\n"
	if err := os.WriteFile("story.toml", []byte(story), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func() (out, errOut bytes.Buffer) {
		t.Helper()
		if code := run([]string{"status", "--demo", "--scenario", "story.toml"}, &out, &errOut); code != exitGood {
			t.Errorf("exit %d: %s", code, errOut.String())
		}
		return out, errOut
	}
	if out, errOut := status(); !strings.Contains(out.String(), "1 host, 3 proxies") || errOut.Len() > 0 {
		t.Errorf("alone: %s%s", out.String(), errOut.String())
	}
	c, err := load(flags{demo: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := withEngine(t.Context(), c, flags{demo: true}, slog.New(slog.DiscardHandler), func(context.Context, *engine) error {
		out, errOut := status()
		if !strings.Contains(out.String(), "3 hosts") || errOut.String() != "virdeck: this is what the running demo says; story.toml is not played\n" {
			t.Errorf("beside a demo: %s%s", out.String(), errOut.String())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
