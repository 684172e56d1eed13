import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN } from '../../../bench/up.ts'
import t, { type Test } from '../../support/harness/index.ts'

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'strowger-script-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  return path
}

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs the strowger command with this input. */
function strowger(args: readonly string[], input = '', env: Record<string, string> = {}): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, ...env },
  })
  let out = ''
  let err = ''
  child.stdout.on('data', data => {
    out += data
  })
  child.stderr.on('data', data => {
    err += data
  })
  child.stdin.end(input)
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => resolve({ code, out, err }))
  })
}

/** Starts a script server that responds by path and records its requests. */
async function server(t: Test, replies: Record<string, string>): Promise<{ base: string; asked: string[] }> {
  const asked: string[] = []
  const http = createServer((request, response) => {
    let body = ''
    request.on('data', data => {
      body += data
    })
    request.on('end', () => {
      asked.push(`${request.url} ${body}`)
      response.setHeader('content-type', 'text/xml')
      response.end(replies[request.url ?? ''] ?? '<Response/>')
    })
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  t.teardown(() => http.close())
  return { base: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, asked }
}

t.test('script check lists findings with their places and exits with 1 after an error', async t => {
  const bad = await strowger(['script', 'check', 'fixtures/markup/bad/bare-ampersand.xml'])
  t.equal(bad.code, 1)
  t.match(bad.out, 'bare-ampersand.xml:2:35: error: an ampersand that begins no entity is written &amp; [syntax 12100]')
  const good = await strowger(['script', 'check', '-', '--json'], '<Response><Spell>a</Spell></Response>')
  t.equal(good.code, 0, 'a warning is not an error')
  t.match(JSON.parse(good.out), { ok: true, advice: [{ line: 1, column: 11, number: 12200 }] })
  const missing = await strowger(['script', 'check', '/no/such/file'])
  t.match(missing, { code: 1, err: /\/no\/such\/file cannot be read: there is no such file/ })
})

t.test('script run prints speech, reads typed keys, and follows the action', async t => {
  const { base, asked } = await server(t, {
    '/menu': '<Response><Say>You pressed a key</Say><Dial>+2348030000001</Dial><Say>Goodbye</Say></Response>',
  })
  const file = join(folder(t), 'menu.xml')
  writeFileSync(
    file,
    '<Response><Gather numDigits="2" action="/menu"><Say>Press two keys</Say></Gather><Say>Nothing</Say></Response>',
  )
  const ran = await strowger(['script', 'run', file, '--url', `${base}/voice`, '--child', 'busy'], '42\n')
  t.equal(ran.code, 0, ran.err)
  t.strictSame(
    ran.out.split('\n').filter(line => line.startsWith('"')),
    ['"  Press two keys', '"  You pressed a key', '"  Goodbye'],
  )
  t.match(ran.out, /dials \+2348030000001/)
  t.match(asked[0], /^\/menu .*Digits=42&FinishedOnKey=/)
})

t.test('script run fetches a URL, and timers fire at once after the end of input', async t => {
  const { base, asked } = await server(t, {
    '/voice': '<Response><Gather timeout="3600"><Say>Hello</Say></Gather><Echo/></Response>',
  })
  const ran = await strowger(['script', 'run', `${base}/voice`, '--unanswered', '--from', '+2340001'])
  t.match(ran.out, /answer\n" {2}Hello/)
  t.match(ran.out, /the script is over: gone/)
  t.match(asked[0], /CallStatus=ringing/)
})

t.test('replay runs a log again and prints the first difference', async t => {
  const path = folder(t)
  const log = join(path, 'run.jsonl')
  await strowger(['script', 'run', '-', '--log', log], '<Response><Say>One</Say><Say>Two</Say></Response>')
  t.match(await strowger(['replay', log]), { code: 0, out: /same, 3 steps/ })

  const call = `CA${'a'.repeat(32)}`
  writeFileSync(join(path, 'strowger.sqlite'), '')
  writeFileSync(join(path, 'master.key'), '07'.repeat(32), { mode: 0o600 })
  mkdirSync(join(path, 'runs'))
  writeFileSync(join(path, 'runs', `${call}-1.jsonl`), readFileSync(log, 'utf8').replace('"text":"Two"', '"text":"2"'))
  const differs = await strowger(['replay', call], '', { STROWGER_DATA: path })
  t.equal(differs.code, 1)
  t.match(differs.out, /differs at line 2 \(play_ended\), command 1/)
  t.match(differs.out, /replayed: .*Two/)
  t.match(await strowger(['replay', `CA${'b'.repeat(32)}`], '', { STROWGER_DATA: path }), {
    code: 1,
    err: /no run of CA/,
  })
  t.match(await strowger(['replay', 'nonsense']), { code: 1, err: /no CallSid/ })
})
