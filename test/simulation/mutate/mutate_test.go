// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"testing"
)

func TestEachMutationHasItsPlaceInTheSource(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			text, err := m.source("../../..")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, 0); err != nil {
				t.Error(err)
			}
		})
	}
}
