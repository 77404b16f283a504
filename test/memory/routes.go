// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// served carries out the writes of a kind, with the handlers and registries of kube-apiserver. It holds no state: all Servers of a
// process share it, and the Server of a request is in its context.
type served struct {
	attributes   storage.AttrFunc
	defaulter    runtime.ObjectDefaulter
	converter    runtime.ObjectConvertor
	manager      *managedfields.FieldManager
	main, status map[string]func() http.HandlerFunc // by verb, as in RequestInfo
}

// compiled are the kinds that were served already. Its entries never change and never blocks, so that bubbles can share it.
var compiled = struct {
	sync.Mutex
	kinds map[Kind]*served
}{kinds: map[Kind]*served{}}

func serve(k Kind) (*served, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if s := compiled.kinds[k]; s != nil {
		return s, nil
	}
	make := serveBuiltin
	if k.custom() {
		make = serveCustom
	}
	s, err := make(k)
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", k.ID(), err)
	}
	compiled.kinds[k] = s
	return s, nil
}

// patches are the patches of Kubernetes' own kinds.
var patches = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

// routes make the handlers of writes: one for each request, as they keep its state. The store is nil for subresources, which are
// updated alone.
func routes(store *registry.Store, of any, scope *handlers.RequestScope) map[string]func() http.HandlerFunc {
	patches := patches
	if scope.StandardSerializers != nil { // custom resources have no strategic merge
		patches = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	}
	out := map[string]func() http.HandlerFunc{
		"update": func() http.HandlerFunc { return handlers.UpdateResource(of.(rest.Updater), scope, admission{}) },
		"patch":  func() http.HandlerFunc { return handlers.PatchResource(of.(rest.Patcher), scope, admission{}, patches) },
	}
	if store != nil {
		out["create"] = func() http.HandlerFunc { return handlers.CreateResource(store, scope, admission{}) }
		out["delete"] = func() http.HandlerFunc {
			return handlers.DeleteResource(of.(rest.GracefulDeleter), true, scope, admission{})
		}
		out["deletecollection"] = func() http.HandlerFunc { return handlers.DeleteCollection(store, true, scope, admission{}) }
	}
	return out
}

// options have a registry store objects in the Server of a request.
func (k Kind) options(codec runtime.Codec) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{
			Config: storagebackend.Config{Codec: codec}, GroupResource: k.resource().GroupResource(),
		},
		Decorator: func(
			*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object,
			storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			return stored{kind: k}, func() {}, nil
		},
		EnableGarbageCollection: true, DeleteCollectionWorkers: 1, ResourcePrefix: prefix,
	}
}

// authorized asks Options.Authorize.
type authorized struct{}

func (authorized) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if allow := requestOf(ctx).server.options.Authorize; allow != nil {
		if ok, reason := allow(ctx, a); !ok {
			return authorizer.DecisionDeny, reason, nil
		}
	}
	return authorizer.DecisionAllow, "", nil
}
