import { guardTerminal } from '../../../bin/terminal.ts'
import t from '../../support/harness/index.ts'

t.test('what others wrote cannot steer the terminal of an operator', async t => {
  const written: unknown[] = []
  const stream = { write: (chunk: unknown) => written.push(chunk) > 0 } as unknown as NodeJS.WriteStream
  guardTerminal(stream)
  stream.write('Shop\u001b]0;owned\u0007\n')
  stream.write('Ac\u200bme \u202elatnec\n')
  stream.write(Buffer.from('\u001b[H'))
  t.same(
    written,
    ['Shop\\u001b]0;owned\\u0007\n', 'Ac\\u200bme \\u202elatnec\n', Buffer.from('\u001b[H')],
    'only a command writes sequences, as bytes',
  )
})
