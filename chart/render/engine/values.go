// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
)

// maxYAML bounds the values that YAML prints, and maxPath the names that Table and PathValue look up, in bytes. Methods are not paid for
// as functions are.
const (
	maxYAML = 1 << 20
	maxPath = 1000
)

// Values are what templates see of a chart's values: a map with the methods of Helm's chartutil.Values, within bounds.
type Values map[string]any

// AsMap is the map without methods, for functions that take no other type.
func (v Values) AsMap() map[string]any { return chartutil.Values(v).AsMap() }

// YAML prints the values. It fails for those that are larger than 1 MiB or contain themselves.
func (v Values) YAML() (string, error) {
	m := meter{left: maxYAML}
	if !m.take(reflect.ValueOf(v), 0) {
		return "", exceeded("YAML is asked of values that are larger than %d MiB or nested more than %d deep", maxYAML>>20, maxNesting)
	}
	return chartutil.Values(v).YAML()
}

// Table returns the values at a path as in a.b, or an error if there are none.
func (v Values) Table(path string) (Values, error) {
	if len(path) > maxPath {
		return nil, exceeded("Table is given a path of more than %d bytes", maxPath)
	}
	table := v
	for name := range strings.SplitSeq(path, ".") {
		switch next := table[name].(type) {
		case map[string]any:
			table = next
		case Values:
			table = next
		default:
			return nil, chartutil.ErrNoTable{Key: name}
		}
	}
	return table, nil
}

// PathValue returns the value at a path as in a.b, or an error if there is none, or if it is a map.
func (v Values) PathValue(path string) (any, error) {
	table, name := v, path
	if last := strings.LastIndex(path, "."); last >= 0 {
		var err error
		if table, err = v.Table(path[:last]); err != nil {
			return nil, err
		}
		name = path[last+1:]
	}
	value, ok := table[name]
	if _, isMap := value.(map[string]any); !ok || isMap {
		return nil, chartutil.ErrNoValue{Key: name}
	}
	return value, nil
}
