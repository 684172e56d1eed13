import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { controlPlane, openSandbox } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'

/** Returns the blocks of a page in a language, in order, as one text. */
const blocks = (path: string, language: string): string =>
  [...readFileSync(path, 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)]
    .filter(([, of]) => of === language)
    .map(([, , text]) => text)
    .join('\n')

/** Runs a program, and returns its exit code with what it printed. */
function run(program: string, args: readonly string[], env: Record<string, string>, cwd: string) {
  const child = spawn(program, args, { cwd, env: { PATH: process.env['PATH'] ?? '', ...env } })
  let told = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', data => {
      told += data
    })
  return new Promise<{ code: number | null; told: string }>((done, failed) => {
    child.on('error', failed)
    child.on('close', code => done({ code, told }))
  })
}

t.test('the commands and programs of the pages run as written, by curl and by the stock library', async t => {
  const w = await controlPlane(t)
  await openSandbox(w)
  const env = {
    BASE_URL: w.base_url,
    ACCOUNT_SID: w.demo.account_sid,
    AUTH_TOKEN: w.demo.auth_token,
    API_KEY: w.key,
    FROM: w.demo.numbers[0] ?? '',
  }
  const calls = async () => (await w.state.db.selectFrom('call').select('to_number').execute()).length
  for (const [page, made] of [
    ['docs/voice-api.md', 2],
    ['docs/markup.md', 1],
    ['docs/speech.md', 0],
  ] as const) {
    const before = await calls()
    const script = blocks(page, 'sh')
    const { code, told } = await run(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', script],
      env,
      resolve('fixtures/markup/examples'),
    )
    t.equal(code, 0, `${page}: ${told}`)
    t.equal(await calls(), before + made, `${page} places its calls`)
  }
  // Inside the tree, where packages are found.
  const folder = mkdtempSync('build/page-')
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'page.mjs'), blocks('docs/voice-api.md', 'js'))
  const { code, told } = await run(process.execPath, [resolve(folder, 'page.mjs')], env, '.')
  t.equal(code, 0, told)
  t.match(told, /^(queued|canceled)\n\d+$/m)
  t.equal(await calls(), 4)
})
