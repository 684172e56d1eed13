import { Fragment, h } from 'preact'
import { showTexts } from '../../../../../control/console/lib/shown.ts'
import t from '../../../../support/harness/index.ts'

// #own-process: it changes what Preact does with every element.

t.test('a page shows what others wrote, and obeys none of it', async t => {
  showTexts()
  const of = (node: { readonly props: object }) => (node.props as { children?: unknown }).children
  t.equal(of(h('td', null, 'Ac\u202eme\u200b')), 'Ac\\u202eme\\u200b')
  t.same(of(h(Fragment, null, 'from ', '\u2066+234', ' to ')), ['from ', '\\u2066+234', ' to '])
  t.equal(of(h('td', null, 'می‌خواهم')), 'می‌خواهم')
  t.equal(of(h('textarea', null, 'a\u200bb')), 'a\u200bb', 'what a person edits is not changed')
})
