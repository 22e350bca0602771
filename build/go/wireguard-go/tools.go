//go:build tools

// Package tools names the programs built with the versions of this go.mod.
package tools

import (
	_ "golang.zx2c4.com/wireguard"
)
