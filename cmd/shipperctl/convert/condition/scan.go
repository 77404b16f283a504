// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// token is a word of a condition.
type token struct {
	// kind is number, text, name, placeholder, operator or end.
	kind string
	// text is the token as written; the content of texts, and the argument of placeholders.
	text string
}

// Kinds of tokens that have a content.
const (
	isNumber      = "number"
	isText        = "text"
	isName        = "name"
	isPlaceholder = "placeholder"
	isOperator    = "operator"
	isEnd         = "end"
)

var (
	numbers      = regexp.MustCompile(`^([0-9][0-9_]*(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]+)?`)
	names        = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*`)
	placeholders = regexp.MustCompile(`^\{\{\s*args\.([^\s{}]+)\s*\}\}`)
	// The longer of two operators with the same beginning is first.
	operators = strings.Fields("&& || == != <= >= < > ! + - * / ( ) [ ] { } . , # ? :")
)

// scan splits a condition into tokens. The last one is the end.
func scan(text string) ([]token, error) {
	var out []token
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		next, length, err := first(text)
		if err != nil {
			return nil, err
		}
		out, text = append(out, next), text[length:]
	}
	return append(out, token{kind: isEnd}), nil
}

// first is the first token of a text, and its length.
func first(text string) (token, int, error) {
	if found := placeholders.FindStringSubmatch(text); found != nil {
		return token{isPlaceholder, found[1]}, len(found[0]), nil
	}
	if strings.HasPrefix(text, "{{") {
		return token{}, 0, fmt.Errorf("%s is no argument", shortened(text))
	}
	if found := numbers.FindString(text); found != "" {
		return token{isNumber, strings.ReplaceAll(found, "_", "")}, len(found), nil
	}
	if found := names.FindString(text); found != "" {
		return token{isName, found}, len(found), nil
	}
	if strings.ContainsRune("'\"`", rune(text[0])) {
		return quoted(text)
	}
	for _, operator := range operators {
		if strings.HasPrefix(text, operator) {
			return token{isOperator, operator}, len(operator), nil
		}
	}
	return token{}, 0, fmt.Errorf("%s is not an operator that a Check has", shortened(text))
}

// quoted is a text in quotes at the beginning of a text.
func quoted(text string) (token, int, error) {
	quote, end := text[0], -1
	for i := 1; i < len(text) && end < 0; i++ {
		switch {
		case text[i] == quote:
			end = i
		case text[i] == '\\' && quote != '`':
			i++
		}
	}
	if end < 0 {
		return token{}, 0, fmt.Errorf("%s is not closed", shortened(text))
	}
	content := text[1:end]
	if quote == '`' {
		return token{isText, content}, end + 1, nil
	}
	if quote == '\'' {
		content = strings.ReplaceAll(strings.ReplaceAll(content, `\'`, `'`), `"`, `\"`)
	}
	plain, err := strconv.Unquote(`"` + content + `"`)
	if err != nil {
		return token{}, 0, fmt.Errorf("%s has an escape that is not known", shortened(text))
	}
	return token{isText, plain}, end + 1, nil
}

// shortened is the beginning of a text, for messages.
func shortened(text string) string {
	if r := []rune(text); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return text
}
