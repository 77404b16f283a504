// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object names what an Action is about.
func (a Action) Object() string {
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}.String()
	if a.Name == "" {
		return "all " + resource
	}
	return fmt.Sprintf("%s %q", resource, a.Name)
}

// Commands are shell commands that let a user do what: everywhere if what has no namespace. Commands for two rights or two users never name
// one role or binding: the second would fail.
func Commands(what Action, username string) string {
	resource := schema.GroupResource{Group: what.Group, Resource: what.Resource}.String()
	words, flags := []string{what.Verb, what.Resource}, "--verb="+what.Verb+" --resource="+shellWord(resource)
	if what.Name != "" {
		words, flags = append(words, what.Name), flags+" --resource-name="+shellWord(what.Name)
	}
	role := objectName(words...)
	binding, create, kind := objectName(role, username), "kubectl create cluster", "cluster"
	if what.Namespace != "" {
		create, kind = "kubectl -n "+shellWord(what.Namespace)+" create ", ""
	}
	return fmt.Sprintf("%srole %s %s; %srolebinding %s --%srole=%s --user=%s", create, role, flags, create, binding, kind, role,
		shellWord(username))
}

// Remedy says what lets a user do what in a namespace that may be another user's.
func Remedy(what Action, username string) string {
	return "ask the owner of the namespace to run: " + Commands(what, username)
}

var (
	// notInNames is what the name of a Role or a RoleBinding cannot have, or a shell would read.
	notInNames = regexp.MustCompile(`[^-a-zA-Z0-9.:@_]+`)
	// plainWord is a word that a shell takes as it is.
	plainWord = regexp.MustCompile(`^[-a-zA-Z0-9.:@_/+=,]+$`)
)

// objectName is the name of an object, made of words.
func objectName(words ...string) string {
	return notInNames.ReplaceAllString(strings.Join(words, "-"), "-")
}

// shellWord quotes a word of a command if a shell would change it: issuers choose the names of users.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
