//go:build tools

// Package tools names the programs built with the versions of this go.mod.
package tools

import (
	_ "github.com/flannel-io/flannel"
)
