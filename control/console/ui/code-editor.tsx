import { autocompletion, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { xml } from '@codemirror/lang-xml'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { Compartment, EditorState, type Text } from '@codemirror/state'
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'preact/hooks'

/** An editor of XML documents: completion, remarks at their place, and the differences from another text. */

export interface MarkupElement {
  readonly name: string
  /** It is the root of a document. */
  readonly top?: boolean
  readonly children: readonly string[]
  readonly attributes: readonly { readonly name: string; readonly values?: readonly string[] }[]
}

/** A remark about a place in the text. Lines and columns count from 1. */
interface Remark {
  readonly line: number
  readonly column: number
  readonly level: string
  readonly detail: string
}

interface Props {
  readonly label: string
  readonly value: string
  readonly onInput: (text: string) => void
  readonly elements: readonly MarkupElement[]
  readonly remarks: readonly Remark[]
  /** The text whose differences are shown; null shows none. */
  readonly against: string | null
  /** A place to go to: a new object moves the cursor again. */
  readonly place: { readonly line: number; readonly column: number } | null
}

const offsetOf = (text: Text, { line, column }: { line: number; column: number }): number => {
  const { from, to } = text.line(Math.min(Math.max(1, line), text.lines))
  return Math.min(to, from + Math.max(0, column - 1))
}

function diagnosticsOf(text: Text, remarks: readonly Remark[]): Diagnostic[] {
  return remarks.map(remark => {
    const from = offsetOf(text, remark)
    const { to } = text.lineAt(from)
    return { from, to, severity: remark.level === 'error' ? 'error' : 'warning', message: remark.detail }
  })
}

const colours = HighlightStyle.define([
  { tag: tags.tagName, color: 'var(--accent)' },
  { tag: tags.attributeName, color: 'var(--lane-2)' },
  { tag: tags.attributeValue, color: 'var(--good)' },
  { tag: tags.angleBracket, color: 'var(--muted)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

const looks = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--surface)', minHeight: '300px' },
  '.cm-scroller': { font: '13px / 1.6 var(--mono)', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)', padding: '10px 0' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-tooltip': {
    color: 'var(--text)',
    backgroundColor: 'var(--raised)',
    border: '1px solid var(--border)',
    borderRadius: 'var(--radius-small)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { color: 'var(--on-accent)', backgroundColor: 'var(--accent)' },
  '.cm-changedLine, .cm-insertedLine': { backgroundColor: 'var(--good-soft)' },
  '.cm-deletedChunk': { backgroundColor: 'var(--bad-soft)', color: 'var(--text)' },
})

const differences = new Compartment()
const differencesFrom = (original: string | null) =>
  original === null ? [] : unifiedMergeView({ original, mergeControls: false, gutter: false })

/**
 * CodeMirror puts its styles into style elements, which the page's security policy forbids, except in a shadow tree:
 * there it uses constructed style sheets.
 */
export function CodeEditor({ label, value, onInput, elements, remarks, against, place }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const told = useRef(onInput)
  told.current = onInput
  // The editor is made once. The other effects bring it up to date.
  useEffect(() => {
    if (!host.current) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' })
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          ...[lineNumbers(), lintGutter(), history(), bracketMatching(), highlightActiveLine()],
          ...[xml({ elements }), autocompletion(), syntaxHighlighting(colours), looks],
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', tabindex: '0' }),
          EditorView.updateListener.of(update => update.docChanged && told.current(update.state.doc.toString())),
          differences.of([]),
        ],
      }),
    })
    view.current = made
    return () => {
      view.current = null
      made.destroy()
    }
  }, [])
  useEffect(() => {
    const text = view.current?.state.doc
    if (!text || text.toString() === value) return
    view.current?.dispatch({ changes: { from: 0, to: text.length, insert: value } })
  }, [value])
  useEffect(() => {
    const state = view.current?.state
    if (state) view.current?.dispatch(setDiagnostics(state, diagnosticsOf(state.doc, remarks)))
  }, [remarks])
  useEffect(() => {
    view.current?.dispatch({ effects: differences.reconfigure(differencesFrom(against)) })
  }, [against])
  useEffect(() => {
    if (!place || !view.current) return
    view.current.dispatch({ selection: { anchor: offsetOf(view.current.state.doc, place) }, scrollIntoView: true })
    view.current.focus()
  }, [place])
  return <div class="editor" ref={host} />
}
