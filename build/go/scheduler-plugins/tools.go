//go:build tools

// Package tools names what is taken with the versions of this go.mod.
package tools

import (
	_ "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)
