// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxListed bounds the rights that a message lists.
const maxListed = 5

// Selected is what a selector of an Application selects.
type Selected struct {
	// Index is that of the selector.
	Index int
	// Group and Resource are those of the kind.
	Group, Resource string
	// Namespaced says whether objects of the kind have a namespace.
	Namespaced bool
	// Namespace is that of the objects; empty for kinds without one. Name is empty for all objects, and for those with labels.
	Namespace, Name string
}

// Need is a right that the selector with this index needs.
type Need struct {
	Action
	Index int
}

// ToPlace are the rights that a user needs to select objects in an Application of a namespace: to read what is in that namespace, and to
// place all else.
func ToPlace(namespace string, all []Selected) []Need {
	out := make([]Need, len(all))
	for i, one := range all {
		action := Action{Verb: Place, Group: one.Group, Resource: one.Resource, Name: one.Name}
		switch {
		case !one.Namespaced: // of kind Namespace, too: the right covers the content
		case one.Namespace != namespace:
			action = PlaceNamespace(one.Namespace)
		case one.Name != "":
			action.Verb, action.Namespace = "get", namespace
		default:
			action.Verb, action.Namespace = "list", namespace
		}
		out[i] = Need{action, one.Index}
	}
	return out
}

// ToPlaceContent are the rights that objects in content need besides those that its selectors need: an Envelope may hold objects of other
// namespaces, and of kinds without one. Those of the Application's namespace are the author's of the Envelope alone.
func ToPlaceContent(namespace string, content []Selected, asked []Need) []Need {
	known := map[Action]bool{}
	for _, n := range asked {
		known[n.Action] = true
	}
	var out []Need
	for _, one := range content {
		action, every := PlaceNamespace(one.Namespace), PlaceNamespace("")
		switch {
		case one.Namespaced && one.Namespace == namespace:
			continue
		case !one.Namespaced:
			action = Action{Verb: Place, Group: one.Group, Resource: one.Resource, Name: one.Name}
			every = Action{Verb: Place, Group: one.Group, Resource: one.Resource}
		}
		if known[action] || known[every] {
			continue
		}
		known[action] = true
		out = append(out, Need{action, one.Index})
	}
	return out
}

// PlaceNamespace is the right to place the content of a namespace.
func PlaceNamespace(name string) Action {
	return Action{Verb: Place, Resource: "namespaces", Name: name}
}

// Chooser names, in messages, the user who chose the resources of an Application.
func Chooser(username, namespace, app string) string {
	return fmt.Sprintf("user %q, who chose the resources of Application %s/%s,", username, namespace, app)
}

// Lacks says which right a subject lacks to place objects, and which commands grant it to a user.
func Lacks(what Action, subject, username string) string {
	if what.Verb == Place {
		return fmt.Sprintf("%s may not place %s on clusters: that needs the verb %q on it; %s", subject, what.Object(), what.Verb,
			Commands(what, username))
	}
	return fmt.Sprintf("%s may not %s %s in namespace %s, and only what its author may read is placed; %s", subject, what.Verb,
		what.Object(), what.Namespace, Commands(what, username))
}

// Could says who had a right when the resources of an Application were selected last, and how to find out whether a user has it now.
func Could(what Action, username string) string {
	object := schema.GroupResource{Group: what.Group, Resource: what.Resource}.String()
	if what.Name != "" {
		object += "/" + what.Name
	}
	scope := ""
	if what.Namespace != "" {
		scope = " -n " + shellWord(what.Namespace)
	}
	return fmt.Sprintf("user %q changed spec last, and may be asked; whether that user may: kubectl auth can-i %s %s%s --as=%s",
		username, what.Verb, shellWord(object), scope, shellWord(username))
}

// List joins what is lacked, shortened.
func List(texts []string) string {
	out := strings.Join(texts[:min(len(texts), maxListed)], "; ")
	if more := len(texts) - maxListed; more > 0 {
		out += fmt.Sprintf("; and %d more", more)
	}
	return out
}
