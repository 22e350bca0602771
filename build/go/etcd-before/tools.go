//go:build tools

// Package tools names the programs built with the versions of this go.mod.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)
