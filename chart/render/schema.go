// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"

	"shipper.dev/shipper/chart"
)

// nothingElse is the loader for schemas that refer to other files. Helm would read them from this machine and its network,
// which a chart must not do.
type nothingElse struct{}

// Load refuses.
func (nothingElse) Load(string) (any, error) {
	return nil, errors.New("a schema may refer to nothing but itself")
}

// checkSchemas validates the values with the schemas of the chart and its subcharts.
func checkSchemas(c *helmchart.Chart, values map[string]any) error {
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values); err != nil {
			return chartError("the values do not fit the schema of %s: %s", c.Name(), chart.Limit(err.Error(), 1000)).
				WithPublic("the values do not fit the schema of %s", c.Name())
		}
	}
	for _, child := range c.Dependencies() {
		given, ok := values[child.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := checkSchemas(child, given); err != nil {
			return err
		}
	}
	return nil
}

func checkSchema(schema []byte, values map[string]any) error {
	const self = "shipper:values.schema.json"
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothingElse{})
	if err := compiler.AddResource(self, parsed); err != nil {
		return err
	}
	compiled, err := compiler.Compile(self)
	if err != nil {
		return err
	}
	if err := compiled.Validate(values); err != nil {
		failure := strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+self+"#'\n")
		return errors.New(failure)
	}
	return nil
}
