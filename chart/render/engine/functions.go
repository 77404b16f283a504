// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// functions are those of sprig and Helm, each within bounds.
func (r *run) functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	for name, f := range helmFunctions() {
		all[name] = f
	}
	all["lookup"] = r.lookUp
	bounded := make(template.FuncMap, len(all))
	for name, f := range all {
		bounded[name] = r.bound(name, f)
	}
	for name, f := range r.inserted() {
		bounded[name] = f
	}
	return bounded
}

// helmFunctions are those that Helm has beyond sprig, and those of text/template that print.
func helmFunctions() template.FuncMap {
	return template.FuncMap{
		"toYaml": toYAML, "toYamlPretty": toYAMLPretty, "toJson": toJSON, "toToml": toTOML,
		"fromYaml":      decodeMap(func(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }),
		"fromJson":      decodeMap(func(text string, into any) error { return json.Unmarshal([]byte(text), into) }),
		"fromToml":      decodeMap(func(text string, into any) error { return toml.Unmarshal([]byte(text), into) }),
		"fromYamlArray": decodeList(func(text string, into any) error { return yaml.Unmarshal([]byte(text), into) }),
		"fromJsonArray": decodeList(func(text string, into any) error { return json.Unmarshal([]byte(text), into) }),
		"required":      required,
		"fail":          func(message string) (string, error) { return "", &said{message} },
		"getHostByName": func(string) string { return "" },
		"print":         fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"typeOf": typeOf, "typeIs": func(name string, value any) bool { return name == typeOf(value) },
		"typeIsLike": func(name string, value any) bool { return name == typeOf(value) || "*"+name == typeOf(value) },
		"html":       template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	}
}

// lookUp finds an object of the cluster, and pays for its copy. As in Helm, it is an empty map if there is none.
func (r *run) lookUp(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if r.lookup == nil {
		return map[string]any{}, nil
	}
	found, size := r.lookup(apiVersion, kind, namespace, name)
	if found == nil {
		return map[string]any{}, nil
	}
	if err := r.spend(size); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(found), nil
}

// required demands a value that is neither nil nor empty.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return value, &said{message}
	}
	return value, nil
}

// typeOf is the name of a value's type as charts know it, which compare it.
func typeOf(value any) string {
	if _, ok := value.(Values); ok {
		value = chartutil.Values{}
	}
	return fmt.Sprintf("%T", value)
}

// toYAML and its like give an empty text for what cannot be encoded, as they do in Helm.
func toYAML(value any) string {
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(encoded), "\n")
}

func toYAMLPretty(value any) string {
	var encoded bytes.Buffer
	encoder := yamlv3.NewEncoder(&encoded)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSuffix(encoded.String(), "\n")
}

func toJSON(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// toTOML gives the error as text, as Helm does for this one.
func toTOML(value any) string {
	var encoded bytes.Buffer
	if err := toml.NewEncoder(&encoded).Encode(value); err != nil {
		return err.Error()
	}
	return encoded.String()
}

// decodeMap makes a function that returns a decoding error under the key Error.
func decodeMap(decode func(text string, into any) error) func(string) map[string]any {
	return func(text string) map[string]any {
		decoded := map[string]any{}
		if err := decode(text, &decoded); err != nil {
			decoded["Error"] = err.Error()
		}
		return decoded
	}
}

// decodeList makes a function that returns a decoding error as the only item.
func decodeList(decode func(text string, into any) error) func(string) []any {
	return func(text string) []any {
		decoded := []any{}
		if err := decode(text, &decoded); err != nil {
			return []any{err.Error()}
		}
		return decoded
	}
}

// errorType is the type of errors.
var errorType = reflect.TypeFor[error]()

// bound makes a function that pays before it calls f, and for what f gives.
func (r *run) bound(name string, f any) any {
	inner := reflect.ValueOf(f)
	kind := inner.Type()
	in := make([]reflect.Type, kind.NumIn())
	for i := range in {
		in[i] = kind.In(i)
	}
	outer := reflect.FuncOf(in, []reflect.Type{kind.Out(0), errorType}, kind.IsVariadic())
	return reflect.MakeFunc(outer, func(args []reflect.Value) []reflect.Value {
		if err := r.before(name, args); err != nil {
			return []reflect.Value{reflect.Zero(kind.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		var out []reflect.Value
		if kind.IsVariadic() {
			out = inner.CallSlice(args)
		} else {
			out = inner.Call(args)
		}
		if len(out) == 2 && !out[1].IsNil() {
			return out
		}
		err := r.after(name, out[0])
		return []reflect.Value{out[0], reflect.ValueOf(&err).Elem()}
	}).Interface()
}
