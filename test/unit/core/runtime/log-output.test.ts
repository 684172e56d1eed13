import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { builtModule } from '../../../../core/runtime/tree.ts'
import t from '../../../support/harness/index.ts'

// A process that logs, and how it ends.

const LOG = `
const { createLog } = await import(${JSON.stringify(builtModule('core/runtime/log.js'))})
const log = createLog('test', { log_level: 'info' })
`

const ending = (script: string, stderr: 'pipe' | number) =>
  new Promise<{ code: number | null; printed: string }>(resolve => {
    const words = ['--input-type=module', '-e', LOG + script]
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', stderr] })
    let printed = ''
    child.stderr?.setEncoding('utf8').on('data', text => {
      printed += text
    })
    child.once('close', code => resolve({ code, printed }))
  })

t.test('a log that cannot be written ends no process, and keeps none from ending', async t => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => closeSync(full))
  const logs = `
    log.warn('one')
    setTimeout(() => {
      log.warn('two')
      log.fatal('three')
      setTimeout(() => { log.warn('four'); process.exit(7) }, 10)
    }, 10)`
  t.equal((await ending(logs, full)).code, 7)
})

t.test('lines come whole and in their order', async t => {
  const { code, printed } = await ending("for (let i = 0; i < 2000; i++) log.info({ i }, 'é'.repeat(100))", 'pipe')
  t.equal(code, 0)
  const lines = printed.trimEnd().split('\n')
  t.same(
    lines.map(line => JSON.parse(line).i),
    lines.map((_, i) => i),
  )
  t.equal(lines.length, 2000)
})
