// SPDX-License-Identifier: Apache-2.0

package start

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// begin makes a manager with a cache of ConfigMaps, which lists them from an API server that answers as list says.
func begin(t *testing.T, list http.HandlerFunc) manager.Manager {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := httptest.NewServer(list)
	t.Cleanup(server.Close)
	mgr, err := ctrl.NewManager(&rest.Config{Host: server.URL}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	return mgr
}

// TestAManagerEndsWhoseCachesAreNotFilled leaves the manager behind, which keeps a core busy until the tests of this package are over.
func TestAManagerEndsWhoseCachesAreNotFilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	mgr := begin(t, func(http.ResponseWriter, *http.Request) {
		cancel() // the process is asked to end while it starts
		<-release
	})
	if err := Manager(ctx, mgr); err != nil {
		t.Error(err)
	}
}

// empty answers with a list of no ConfigMaps, and with watches of no events.
func empty(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			http.Error(w, "no such option", http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = w.Write([]byte(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`))
}

// TestAManagerEndsItsWorkThatHasBegun has a runnable that takes until the end of the manager.
func TestAManagerEndsItsWorkThatHasBegun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mgr := begin(t, empty)
	over := false
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		over = true
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := Manager(ctx, mgr); err != nil {
		t.Error(err)
	}
	if !over {
		t.Error("Manager returned before the work was over")
	}
}

func TestAManagerThatFailsEndsWithItsError(t *testing.T) {
	failure := errors.New("another process leads")
	mgr := begin(t, empty)
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error { return failure })); err != nil {
		t.Fatal(err)
	}
	if err := Manager(t.Context(), mgr); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}
