package controller

import "virdeck/model"

// SetReloadNote shows what the configuration file has that is not applied; nil
// takes the notice away. Safe at any time.
func (c *Controller) SetReloadNote(n *model.Notice) {
	c.reloadNote.Store(n)
	c.touch()
}
