// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// allContainers stands for all containers, as in `kubectl set image`.
const allContainers = "*"

// image is one that a user gives to a container.
type image struct{ container, reference string }

// replaced is an image that was replaced.
type replaced struct {
	// path is the field of the Application.
	path     string
	from, to string
}

// parseImages reads arguments such as web=nginx:1.29.
func parseImages(args []string) ([]image, error) {
	var out []image
	for _, arg := range args {
		container, reference, ok := strings.Cut(arg, "=")
		odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
		incomplete := reference == "" || strings.Trim(reference, ":@/=") != reference // without a name, a tag or a digest
		if !ok || container == "" || incomplete || strings.ContainsFunc(reference, odd) {
			return nil, fmt.Errorf("%q is not CONTAINER=IMAGE, such as web=nginx:1.29", arg)
		}
		if slices.ContainsFunc(out, func(i image) bool { return i.container == container }) {
			return nil, fmt.Errorf("the container %s is given two images", container)
		}
		out = append(out, image{container, reference})
	}
	return out, nil
}

// setImages are the values of an Application's template with images replaced. It refuses what the values do not say clearly.
func setImages(app *shipper.Application, wanted []image) (shipper.ChartValues, []replaced, error) {
	what := fmt.Sprintf("application %s/%s", app.Namespace, app.Name)
	if app.Spec.Template.Resources != nil {
		return nil, nil, fmt.Errorf("%s places resources and has no chart: change the image in the objects that spec.template.resources "+
			"selects", what)
	}
	values := shipper.ChartValues{}
	if given := app.Spec.Template.Values; given != nil && *given != nil {
		values = given.DeepCopy()
	}
	var all []replaced
	for _, one := range wanted {
		changed, err := setImage(values, app, one)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", what, err)
		}
		all = append(all, changed...)
	}
	return values, slices.DeleteFunc(all, func(r replaced) bool { return r.from == r.to }), nil
}

// setImage replaces the image of a container in values: in containers.NAME.image, as charts of `shipperctl convert` have it, or in the
// repository and tag of the one map for it.
func setImage(values map[string]any, app *shipper.Application, one image) ([]replaced, error) {
	containers := containersOf(values)
	if len(containers) > 0 {
		names := []string{one.container}
		if one.container == allContainers {
			names = slices.Sorted(maps.Keys(containers))
		}
		var out []replaced
		for _, name := range names {
			fields := containers[name]
			if fields == nil {
				return nil, fmt.Errorf("there is no container %q in spec.template.values.containers, only: %s", name,
					strings.Join(slices.Sorted(maps.Keys(containers)), ", "))
			}
			out = append(out, replaced{"containers." + name + ".image", fields["image"].(string), one.reference})
			fields["image"] = one.reference
		}
		return out, nil
	}
	found := slices.DeleteFunc(repositories(values, nil), func(r repository) bool { return !r.isOf(one.container, app) })
	if len(found) == 0 {
		return nil, fmt.Errorf("its values have no image of a container %q: neither spec.template.values.containers.%s.image nor one map with "+
			"repository and tag for it; find the value with `shipperctl chart render app %s`, and edit the application", one.container,
			one.container, app.Name)
	}
	if len(found) > 1 {
		var paths []string
		for _, r := range found {
			paths = append(paths, r.path())
		}
		return nil, fmt.Errorf("%q may be one of %s in spec.template.values: edit the application", one.container, strings.Join(paths, ", "))
	}
	changed, err := found[0].set(one.reference)
	return []replaced{changed}, err
}

// containersOf are the containers in values that have an image: those of a chart of `shipperctl convert`.
func containersOf(values map[string]any) map[string]map[string]any {
	all, _ := values["containers"].(map[string]any)
	out := map[string]map[string]any{}
	for name, one := range all {
		fields, _ := one.(map[string]any)
		if _, ok := fields["image"].(string); ok {
			out[name] = fields
		}
	}
	return out
}

// repository is a map of values with the parts of an image.
type repository struct {
	keys   []string
	fields map[string]any
}

// repositories are the maps below values that have a repository.
func repositories(values map[string]any, at []string) (found []repository) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		below, ok := values[key].(map[string]any)
		if !ok {
			continue
		}
		path := append(slices.Clone(at), key)
		if _, ok := below["repository"].(string); ok {
			found = append(found, repository{path, below})
			continue
		}
		found = append(found, repositories(below, path)...)
	}
	return found
}

func (r repository) path() string { return strings.Join(r.keys, ".") }

// isOf reports whether a map may have the image of a container: `image` is that of the container with the name of the chart or the
// Application, and NAME.image that of NAME.
func (r repository) isOf(container string, app *shipper.Application) bool {
	if container == allContainers {
		return true
	}
	if len(r.keys) == 1 && r.keys[0] == "image" {
		return container == app.Spec.Template.Chart.Name || container == app.Name
	}
	return len(r.keys) > 1 && r.keys[len(r.keys)-1] == "image" && r.keys[len(r.keys)-2] == container
}

// set replaces the parts of the image.
func (r repository) set(reference string) (replaced, error) {
	before := r.reference()
	name, digest, _ := strings.Cut(reference, "@")
	repository, tag := name, ""
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		repository, tag = name[:at], name[at+1:]
	}
	_, hasDigest := r.fields["digest"].(string)
	switch {
	case digest != "" && !hasDigest:
		return replaced{}, fmt.Errorf("spec.template.values.%s has no digest: name %s by a tag, or edit the application", r.path(), repository)
	case tag == "" && digest == "":
		return replaced{}, fmt.Errorf("%s has no tag: write one, such as %s:1.2.3", reference, repository)
	}
	if _, separate := r.fields["registry"].(string); separate {
		first, rest, ok := strings.Cut(repository, "/")
		if !ok || !strings.ContainsAny(first, ".:") && first != "localhost" {
			return replaced{}, fmt.Errorf("spec.template.values.%s has a registry: write that of %s, too, such as docker.io/%s", r.path(),
				reference, reference)
		}
		r.fields["registry"], repository = first, rest
	}
	r.fields["repository"], r.fields["tag"] = repository, tag
	if hasDigest {
		r.fields["digest"] = digest
	}
	return replaced{r.path(), before, r.reference()}, nil
}

// reference is the image as one text.
func (r repository) reference() string {
	out := ""
	for _, part := range []struct{ key, before, after string }{
		{"registry", "", "/"}, {"repository", "", ""}, {"tag", ":", ""}, {"digest", "@", ""},
	} {
		if value, found := r.fields[part.key]; found && value != nil && value != "" {
			out += part.before + fmt.Sprint(value) + part.after
		}
	}
	return out
}

// keepingTheirs names the regions and clusters whose own values have the values at a path, which replaces those of all.
func keepingTheirs(app *shipper.Application, path string) (out []string) {
	keys := strings.Split(path, ".")
	for _, layer := range []struct {
		field string
		all   []shipper.ValuesFor
	}{{"valuesPerRegion", app.Spec.Template.ValuesPerRegion}, {"valuesPerCluster", app.Spec.Template.ValuesPerCluster}} {
		for _, one := range layer.all {
			if one.Values != nil && has(*one.Values, keys) {
				out = append(out, layer.field+" of "+one.Name)
			}
		}
	}
	return out
}

func has(values map[string]any, keys []string) bool {
	for i, key := range keys {
		value, found := values[key]
		if !found || i == len(keys)-1 {
			return found
		}
		values, _ = value.(map[string]any)
	}
	return false
}
