import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from '../../support/harness/index.ts'

t.test('an icon is one path: each of its shapes stands where it stood', async t => {
  const { pathOf } = await import(pathToFileURL(resolve('scripts/icon-paths.mjs')).href)
  const relative = ['path', { d: 'm4 6 2 2' }]
  t.equal(pathOf([relative]), 'M0 0m4 6 2 2')
  t.equal(pathOf([['path', { d: 'M1 1h2' }], relative]), 'M1 1h2M0 0m4 6 2 2', 'a relative move is from the origin')
  t.equal(pathOf([['line', { x1: '1', y1: '2', x2: '3', y2: '4' }]]), 'M1 2L3 4')
  t.equal(pathOf([['circle', { cx: '12', cy: '7', r: '4' }]]), 'M8 7a4 4 0 1 0 8 0a4 4 0 1 0 -8 0')
  t.equal(pathOf([['rect', { x: '2', y: '3', width: '8', height: '6' }]]), 'M2 3h8v6h-8v-6Z')
  const round = pathOf([['rect', { x: '2', y: '2', width: '8', height: '8', rx: '2' }]])
  t.equal(round, 'M4 2h4a2 2 0 0 1 2 2v4a2 2 0 0 1 -2 2h-4a2 2 0 0 1 -2 -2v-4a2 2 0 0 1 2 -2Z')
  t.throws(() => pathOf([['ellipse', {}]]), /ellipse/)
})
