// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"

	"shipper.dev/shipper/outward/promql"
	"shipper.dev/shipper/webhook/bounds"
)

// maxQueries bounds the bytes of all queries that one write has parsed, with their arguments.
const maxQueries = 128 << 10

// Parser parses the queries of one write.
type Parser struct {
	namespace string
	bytes     int
}

// NewParser parses the queries of a write in a namespace.
func NewParser(namespace string) *Parser { return &Parser{namespace: namespace} }

// parse returns an error if a query is not valid, or if the write has too many. expression.ErrBusy is temporary.
func (p *Parser) parse(ctx context.Context, query string) error {
	if p.bytes += len(query); p.bytes > maxQueries {
		return fmt.Errorf("the queries of all checks, with their arguments, are longer than %d KiB together: use fewer or shorter ones",
			maxQueries>>10)
	}
	return bounds.Compile(ctx, p.namespace, func() error { return promql.Parse(query) })
}

// Exhausted reports whether nothing more is parsed.
func (p *Parser) Exhausted() bool { return p.bytes > maxQueries }
