import { spawn } from 'node:child_process'
import {
  BEGUN,
  type Browsing,
  keysIn,
  listScreen,
  openScreen,
  pressed,
  shownRows,
  type View,
} from '../../../bin/screen/browsing.ts'
import { withTerminal } from '../../../bin/terminal.ts'
import { controlPlane } from '../../support/control-plane.ts'
import { ranCall } from '../../support/ended-calls.ts'
import t from '../../support/harness/index.ts'
import { until } from '../../support/wait.ts'

// What a person sees and presses in `ladder`, `top` and `tail`. #own-process

interface Call {
  readonly id: string
  readonly to: string
  readonly status: string
}

const CALLS: readonly Call[] = ['completed', 'busy', 'failed', 'completed'].map((status, at) => ({
  ...{ id: `CA${at}`, to: `+23480300000${10 - at}`, status },
}))
const VIEW: View<Call> = {
  head: ['four calls'],
  rows: CALLS,
  columns: [
    { title: 'CALL', text: ({ id }) => id },
    { title: 'TO', text: ({ to }) => to },
    { title: 'STATUS', text: ({ status }) => status, states: true },
  ],
  key: ({ id }) => id,
}
const PAGE = 2
const after = (keys: string): Browsing | null =>
  keysIn(keys).reduce<Browsing | null>((now, key) => now && pressed(now, key, VIEW, PAGE), BEGUN)
const [UP, DOWN, PAGE_DOWN, ENTER, ESCAPE] = ['\u001b[A', '\u001b[B', '\u001b[6~', '\r', '\u001b']

t.test('keys choose a row, filter, sort and open', async t => {
  t.equal(after(DOWN + DOWN + UP)?.chosen, 'CA1')
  t.equal(after(PAGE_DOWN + PAGE_DOWN)?.chosen, 'CA3', 'the end is not passed')
  t.equal(after(`${DOWN}${ENTER}`)?.open, 0)
  t.equal(after(`${DOWN}${ENTER}${DOWN}${DOWN}`)?.open, 2, 'an open row is scrolled')
  t.match(after(`${DOWN}${ENTER}${ESCAPE}`), { open: null, chosen: 'CA1' })
  const ids = (keys: string) => shownRows(VIEW, after(keys) ?? BEGUN).map(({ id }) => id)
  t.same(ids(`/busy${ENTER}`), ['CA1'])
  t.same(ids(`/busyx\u007f${ENTER}`), ['CA1'], 'backspace')
  t.same(ids(`/busy${ENTER}${ESCAPE}`), ['CA0', 'CA1', 'CA2', 'CA3'], 'Esc takes the filter away')
  t.same(ids('/q'), [], 'q is a letter of a filter')
  t.same(ids('ss'), ['CA3', 'CA2', 'CA1', 'CA0'], 'by TO, numbers as numbers')
  t.same(ids('r'), ['CA3', 'CA2', 'CA1', 'CA0'])
  t.equal(after('q'), null)
  t.equal(after('/q\u0003'), null, 'Ctrl-C leaves from everywhere')
  t.equal(pressed(BEGUN, 'enter', { ...VIEW, rows: [] }, PAGE)?.open, null, 'an empty list opens nothing')
})

t.test('no line of a screen is longer than it, at any size, and there are not more lines than it has', async t => {
  for (const columns of [20, 40, 80, 200])
    for (const lines of [5, 24]) {
      for (const keys of ['', '/o', `/o${ENTER}s`]) {
        const screen = listScreen(VIEW, after(keys) ?? BEGUN, { columns, lines })
        t.equal(screen.length, lines)
        t.same(
          screen.filter(line => line.length > columns),
          [],
          `${columns} by ${lines} after ${keys}`,
        )
      }
      t.equal(openScreen(['x'.repeat(300)], 7, { columns, lines }).length, lines)
    }
  t.match(listScreen(VIEW, after(PAGE_DOWN + DOWN) ?? BEGUN, { columns: 80, lines: 5 }), [
    'four calls',
    /CALL/,
    /CA2/,
    /> CA3/,
  ])
})

t.test('colour is for terminals that show it', async t => {
  const unused = (): never => {
    throw new Error('only its colour is asked for')
  }
  const screen = (colour: boolean) =>
    withTerminal(
      { env: {}, user: '', columns: 80, colour, out: unused, err: unused, input: unused, fail: unused, leave: unused },
      async () => listScreen(VIEW, BEGUN, { columns: 80, lines: 10 }).join('\n'),
    )
  t.match(await screen(true), /\u001b\[31mbusy\u001b\[0m/)
  t.notMatch(await screen(false), '\u001b')
})

t.test('tail on a real terminal: arrows, a filter, the ladder of a call, and the terminal as before', async t => {
  const w = await controlPlane(t)
  const call = { origin: 'rest', direction: 'outbound-api' } as const
  await ranCall(w, { cause: 'refused', sip_code: 486, call: { ...call, to_number: '+2348030000002' } })
  await ranCall(w, { seconds: 5, call: { ...call, to_number: '+2348030000001' } })
  const env = {
    ...{ PATH: process.env['PATH'] ?? '', TERM: 'xterm', STROWGER_DATA: w.settings.data_dir },
    STROWGER_MASTER_KEY: '07'.repeat(32),
  }
  /** `script` (util-linux) gives the command a pseudo-terminal. */
  const start = (more: Readonly<Record<string, string>>) => {
    const words = ['-qefc', 'stty cols 80 rows 24; exec bin/strowger tail --every 0.1', '/dev/null']
    const child = spawn('script', words, { env: { ...env, ...more }, stdio: ['pipe', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', text => {
      printed += text
    })
    const ended = new Promise<number | null>(resolve => child.once('close', resolve))
    /** Sends keys, and waits for what the screen shows after them. */
    const press = async (keys: string, shows: RegExp) => {
      const before = printed.length
      child.stdin.write(keys)
      await until(`${JSON.stringify(keys)} shows ${shows}`, () => shows.test(printed.slice(before)))
      return printed.slice(before)
    }
    return { press, ended, printed: () => printed }
  }
  const coloured = start({})
  t.match(await coloured.press('', /completed[\s\S]*busy[\s\S]*q quit/), /\u001b\[31mbusy/)
  await coloured.press(DOWN, /\u001b\[7m> [^\n]*busy/)
  await coloured.press('/completed', /\/completed_/)
  t.match(await coloured.press(ENTER, /1 of 2 have "completed"/), '+2348030000001')
  await coloured.press(ENTER, /no SIP message is kept for this call/)
  await coloured.press(ESCAPE, /1 of 2 have "completed"/)
  const left = await coloured.press('q', /\u001b\[\?1049l/)
  t.match(left, '\u001b[?25h', 'the cursor is back')
  t.equal(await coloured.ended, 0)
  const plain = start({ NO_COLOR: '1' })
  t.notMatch(await plain.press('', /completed[\s\S]*busy[\s\S]*q quit/), /\u001b\[[0-9;]*m/)
  await plain.press('\u0003', /\u001b\[\?1049l/)
  t.equal(await plain.ended, 0)
})
