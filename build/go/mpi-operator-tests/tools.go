//go:build tools

// Package tools names what the operator's own tests import, which no package that can be imported does.
package tools

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	_ "github.com/kubeflow/mpi-operator/test/util"
	_ "github.com/onsi/ginkgo"
	_ "github.com/onsi/gomega"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	_ "volcano.sh/apis/pkg/client/clientset/versioned"
)
