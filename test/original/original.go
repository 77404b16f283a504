// SPDX-License-Identifier: Apache-2.0

// Package original leaves in clusters what the original Shipper left there: its kinds, its accounts, its gate, its Clusters,
// and rollouts in the middle of a step, with what it had installed. Nothing here is ours: objects have no field and no key that
// the original did not write.
package original

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsyaml "sigs.k8s.io/yaml"

	"shipper.dev/shipper/test/fleet"
)

//go:embed *.yaml
var files embed.FS

// system is the namespace of the original.
const system = "shipper-system"

// patience bounds every wait.
const patience = time.Minute

// kind is what the original registered of a kind.
type kind struct {
	Kind, Plural, Singular, Short, Scope, Categories, Required string

	Status bool
	UID    types.UID
}

// kinds of the original. Only the two targets that came last had a status of their own.
var kinds = []kind{
	{Kind: "Application", Short: "app", Categories: "all, shipper", Required: "template"},
	{Kind: "Release", Short: "rel", Categories: "all, shipper", Required: "targetStep, environment"},
	{Kind: "InstallationTarget", Short: "it", Categories: "shipper", Required: "clusters, canOverride"},
	{Kind: "CapacityTarget", Short: "ct", Categories: "shipper", Required: "clusters", Status: true},
	{Kind: "TrafficTarget", Short: "tt", Categories: "shipper", Required: "clusters", Status: true},
	{Kind: "Cluster", Short: "cl", Scope: "Cluster", Categories: "shipper", Required: "region"},
	{Kind: "RolloutBlock", Short: "rb", Categories: "all, shipper", Required: "message, author"},
}

// Kinds registers the kinds, as API servers of the original's time stored them, and waits until they are served.
func Kinds(ctx context.Context, management *fleet.Cluster) error {
	for _, k := range kinds {
		k.Singular = strings.ToLower(k.Kind)
		k.Plural = k.Singular + "s"
		if k.Scope == "" {
			k.Scope = "Namespaced"
		}
		k.UID = uuid.NewUUID()
		text, err := render("kinds.yaml", k)
		if err != nil {
			return err
		}
		stored, err := sigsyaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("reading kinds.yaml: %w", err)
		}
		key := "/apiextensions.k8s.io/customresourcedefinitions/" + k.Plural + ".shipper.booking.com"
		if err := management.Put(ctx, key, stored); err != nil {
			return fmt.Errorf("storing the kind %s: %w", k.Kind, err)
		}
	}
	for _, k := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("shipper.booking.com/v1alpha1")
		list.SetKind(k.Kind + "List")
		err := await(ctx, "the kind "+k.Kind, func(ctx context.Context) (bool, error) {
			c, err := management.Client(nil) // one that discovers the kinds again
			if err != nil {
				return false, err
			}
			err = c.List(ctx, list)
			if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil {
				return err == nil, nil
			}
			return false, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetUp leaves what setting up the management cluster left, but for the gate.
func SetUp(ctx context.Context, management *fleet.Cluster) error {
	return create(ctx, management, "management.yaml", nil)
}

// Deploy leaves the original itself, scaled to nothing.
func Deploy(ctx context.Context, management *fleet.Cluster) error {
	return create(ctx, management, "deployment.yaml", nil)
}

// Shut leaves the webhook configuration, which refuses everything from then on: nothing answers.
func Shut(ctx context.Context, management *fleet.Cluster) error {
	ca := base64.StdEncoding.EncodeToString(management.Config.CAData)
	return create(ctx, management, "webhook.yaml", map[string]any{"CA": ca})
}

// Join leaves what joining an application cluster left, in both clusters.
func Join(ctx context.Context, management, application *fleet.Cluster, region string) error {
	if err := create(ctx, application, "account.yaml", nil); err != nil {
		return err
	}
	there, err := application.Client(nil)
	if err != nil {
		return err
	}
	token := &corev1.Secret{}
	err = await(ctx, "a token of "+application.Name, func(ctx context.Context) (bool, error) {
		err := there.Get(ctx, client.ObjectKey{Namespace: system, Name: "shipper-app-cluster-token-x7k2p"}, token)
		return len(token.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if err != nil {
		return err
	}
	err = create(ctx, management, "cluster.yaml", map[string]any{
		"Name": application.Name, "APIMaster": application.Config.Host, "Region": region,
	})
	if err != nil {
		return err
	}
	here, err := management.Client(nil)
	if err != nil {
		return err
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("shipper.booking.com/v1alpha1")
	cluster.SetKind("Cluster")
	if err := here.Get(ctx, client.ObjectKey{Name: application.Name}, cluster); err != nil {
		return fmt.Errorf("reading Cluster %s: %w", application.Name, err)
	}
	data := map[string]string{}
	for key, value := range token.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return create(ctx, management, "secret.yaml", map[string]any{"Name": application.Name, "UID": cluster.GetUID(), "Data": data})
}

// render fills a file in.
func render(name string, with any) ([]byte, error) {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, with); err != nil {
		return nil, fmt.Errorf("filling %s in: %w", name, err)
	}
	return out.Bytes(), nil
}

// objects are those of a file, filled in.
func objects(name string, with any) ([]*unstructured.Unstructured, error) {
	text, err := render(name, with)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		raw := json.RawMessage{}
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w\n%s", name, err, text)
		}
		o := &unstructured.Unstructured{}
		if string(raw) == "null" {
			continue
		}
		if err := o.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, o)
	}
}

// create creates the objects of a file, and gives those a status that have one of their own.
func create(ctx context.Context, in *fleet.Cluster, name string, with any) error {
	_, err := created(ctx, in, name, with)
	return err
}

// created is create, and the objects as they are then.
func created(ctx context.Context, in *fleet.Cluster, name string, with any) ([]*unstructured.Unstructured, error) {
	all, err := objects(name, with)
	if err != nil {
		return nil, err
	}
	c, err := in.Client(nil)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		status := o.Object["status"]
		if err := c.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("creating %s %s in %s: %w", o.GetKind(), o.GetName(), in.Name, err)
		}
		if status == nil || o.Object["status"] != nil {
			continue
		}
		o.Object["status"] = status
		if err := c.Status().Update(ctx, o); err != nil {
			return nil, fmt.Errorf("writing the status of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return all, nil
}

// await asks until the answer is yes.
func await(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}
