import { readdirSync, readFileSync } from 'node:fs'
import { CALL_NUMBERS } from '../../../../../core/domain/calls/call-numbers.ts'
import t from '../../../../support/harness/index.ts'

const TREE = new URL('../../../../../../', import.meta.url)
/** The sources that put numbers on calls. */
const FOLDERS = [
  'markup',
  'signaling/scripts',
  'signaling/admission',
  'core/domain/webhooks',
  'media/relay',
  'media/forks',
]

const NUMBER = /(?<![\d_.])(1[1-6]\d{3}|31_?\d{3}|64_?1\d\d)(?![\d_])/g

t.test('every number that a call can show has a sentence, and so a page', async t => {
  const numbers = new Set<number>()
  for (const folder of FOLDERS)
    for (const name of readdirSync(new URL(folder, TREE), { recursive: true, encoding: 'utf8' }))
      if (name.endsWith('.ts'))
        for (const [text] of readFileSync(new URL(`${folder}/${name}`, TREE), 'utf8').matchAll(NUMBER))
          numbers.add(Number(text.replace('_', '')))
  t.ok(numbers.size > 100)
  t.same(
    [...numbers].filter(number => CALL_NUMBERS[number] === undefined),
    [],
  )
})
