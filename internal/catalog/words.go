package catalog

import (
	"strings"
	"unicode"
)

// Terms splits what people write into search terms, for the index and for questions alike: words in lower case without marks, so that "da nang" finds
// "Đà Nẵng". A run of a script that is written without spaces becomes one term of single signs with spaces between (a phrase), so that any part of it
// is found. Whatever is neither letter nor digit only separates; so no term can mean anything to a database's query language.
func Terms(text string) []string {
	var terms []string
	var term []byte
	signs := false // whether term is a run of single signs
	end := func() {
		if len(term) > 0 {
			terms = append(terms, string(term))
			term = term[:0]
		}
	}
	for _, r := range text {
		switch {
		case r >= firstLatinMark && r <= lastLatinMark:
			continue // an accent on its own belongs to the letter before
		case unicode.IsMark(r):
			if len(term) > 0 { // a mark is never a term by itself: databases don't count it as a letter
				term = append(term, string(r)...)
			}
			continue
		case !unicode.IsLetter(r) && !unicode.IsNumber(r):
			end()
			continue
		}
		sign := unicode.In(r, unspaced...) || r == 'ー' || r == 'ｰ' // the long vowel of Japanese belongs to no script
		if sign != signs {
			end()
			signs = sign
		}
		if sign && len(term) > 0 {
			term = append(term, ' ')
		}
		term = append(term, folded(r)...)
	}
	end()
	return terms
}

// unspaced are the scripts whose words can't be told apart by spaces alone. Korean has spaces, but joins words that people search for one by one.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// Slug makes the last part of an address of a title: lower-case letters, digits and dashes. Nothing left: "".
func Slug(title string) string {
	var b []byte
	for _, r := range title {
		s := folded(r)
		plain := len(s) > 0 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= '0' && s[0] <= '9')
		switch {
		case plain:
			b = append(b, s...)
		case unicode.Is(unicode.Mn, r), r == '\'', r == '’':
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	if len(b) > MaxSlugBytes {
		b = b[:MaxSlugBytes]
	}
	return strings.Trim(string(b), "-")
}

const firstLatinMark, lastLatinMark = '\u0300', '\u036f'

// folded is a letter in lower case without its marks. The Latin letters of Europe and Viet Nam, and what Greeks and Russians leave out when they type, are
// in a table, because the standard library has no decomposition (Unicode Standard, annex 15); other scripts only lose their case.
func folded(r rune) string {
	r = unicode.ToLower(r)
	if r < 0x80 {
		return string(r)
	}
	switch r {
	case 'ß':
		return "ss"
	case 'æ', 'ǽ':
		return "ae"
	case 'œ':
		return "oe"
	case 'þ':
		return "th"
	case 'ð':
		return "d"
	}
	for _, g := range latin {
		if r >= g.first && r <= g.last {
			return g.plain
		}
	}
	return string(r)
}

var latin = []struct {
	first, last rune
	plain       string
}{
	{'à', 'å', "a"}, {'ç', 'ç', "c"}, {'è', 'ë', "e"}, {'ì', 'ï', "i"}, {'ñ', 'ñ', "n"}, {'ò', 'ö', "o"}, {'ø', 'ø', "o"}, {'ù', 'ü', "u"}, {'ý', 'ý', "y"}, {'ÿ', 'ÿ', "y"},
	{'ā', 'ą', "a"}, {'ć', 'č', "c"}, {'ď', 'đ', "d"}, {'ē', 'ě', "e"}, {'ĝ', 'ģ', "g"}, {'ĥ', 'ħ', "h"}, {'ĩ', 'ı', "i"}, {'ĵ', 'ĵ', "j"}, {'ķ', 'ĸ', "k"}, {'ĺ', 'ł', "l"},
	{'ń', 'ŋ', "n"}, {'ō', 'ő', "o"}, {'ŕ', 'ř', "r"}, {'ś', 'š', "s"}, {'ţ', 'ŧ', "t"}, {'ũ', 'ų', "u"}, {'ŵ', 'ŵ', "w"}, {'ŷ', 'ŷ', "y"}, {'ź', 'ž', "z"},
	{'ơ', 'ơ', "o"}, {'ư', 'ư', "u"}, {'ș', 'ș', "s"}, {'ț', 'ț', "t"},
	{'ά', 'ά', "α"}, {'έ', 'έ', "ε"}, {'ή', 'ή', "η"}, {'ί', 'ί', "ι"}, {'ϊ', 'ϊ', "ι"}, {'ό', 'ό', "ο"}, {'ύ', 'ύ', "υ"}, {'ϋ', 'ϋ', "υ"}, {'ώ', 'ώ', "ω"}, {'ς', 'ς', "σ"},
	{'ΐ', 'ΐ', "ι"}, {'ΰ', 'ΰ', "υ"}, {'ё', 'ё', "е"},
	{'ạ', 'ặ', "a"}, {'ẹ', 'ệ', "e"}, {'ỉ', 'ị', "i"}, {'ọ', 'ợ', "o"}, {'ụ', 'ự', "u"}, {'ỳ', 'ỹ', "y"},
}
