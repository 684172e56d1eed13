import { readdirSync, readFileSync } from 'node:fs'
import { asPrograms, isRoot } from '../../../../bin/least-privilege.ts'
import { bareFile } from '../../../../core/runtime/bare-child.ts'
import { programsRunner } from '../../../../core/runtime/program-runner.ts'
import t from '../../../support/harness/index.ts'
import { PATIENCE_MS, until } from '../../../support/wait.ts'

const FIRST_USER = 60_800
const limits = { limit_ms: PATIENCE_MS, max_bytes: 1024 * 1024 * 1024 }

const read = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // The process has ended.
    return ''
  }
}

/**
 * Returns the process id of a child of this process by the name of its program. The kernel names a program before it
 * takes rights away and puts the environment in place: one without an environment is still being started.
 */
const childNamed = (name: string): string | undefined =>
  readdirSync('/proc').find(
    pid =>
      /^\d+$/.test(pid) &&
      new RegExp(`^\\d+ \\(${name}\\) \\S ${process.pid} `).test(read(pid, 'stat')) &&
      read(pid, 'environ') !== '',
  )

t.test('a program runs as a user that owns nothing, without rights and with an environment of its own', async t => {
  if (!isRoot()) return t.comment('only root can change users')
  const { run, stop } = programsRunner(asPrograms(FIRST_USER))
  // Speech of hours, so that the program still runs when the test looks at it.
  const input = 'This sentence is spoken again and again. '.repeat(20_000)
  const ended = run({ id: 7, program: 'espeak-ng', args: ['--stdin', '--stdout'], run: { ...limits, input } })
  const pid = await until('espeak-ng runs', () => childNamed('espeak-ng'))
  const status = read(pid, 'status')
  t.match(status, /^Uid:\t60803\t60803\t60803\t60803$/m)
  t.match(status, /^Groups:\t $/m)
  for (const set of ['CapPrm', 'CapEff', 'CapBnd']) t.match(status, new RegExp(`^${set}:\t0{16}$`, 'm'))
  t.match(status, /^NoNewPrivs:\t1$/m)
  t.same(
    read(pid, 'environ')
      .split('\0')
      .filter(Boolean)
      .map(line => line.split('=')[0])
      .sort(),
    ['HOME', 'LANG', 'PATH', 'TMPDIR', 'XDG_RUNTIME_DIR'],
  )
  stop(7)
  t.match(await ended, { id: 7, end: { ok: false } })
})

t.test('a program reads its files, which have no name, as its own user, and can be stopped', async t => {
  const programs = programsRunner(isRoot() ? asPrograms(FIRST_USER) : ['env'])
  const said = (words: string, id: number) => ({
    id,
    program: 'espeak-ng',
    args: ['-f', bareFile(0), '--stdout'],
    run: { ...limits, max_memory: 1 << 30, files: [Buffer.from(words).toString('base64')] },
  })
  const { end } = await programs.run(said('Hello', 1))
  t.ok(end.ok && Buffer.from(end.stdout, 'base64').length > 10_000, 'the text of the file is spoken')
  const long = programs.run(said('This sentence is spoken again and again. '.repeat(20_000), 2))
  await until('espeak-ng runs', () => childNamed('espeak-ng'))
  programs.stop(2)
  t.match(await long, { id: 2, end: { ok: false, too_long: false, detail: /SIGKILL/ } })
})

t.test('the supervisor runs speech for another process, and nothing else', async t => {
  const { run } = programsRunner(['env'])
  const spoken = await run({ id: 1, program: 'espeak-ng', args: ['--stdout', '--', 'Hello'], run: limits })
  t.equal(spoken.id, 1)
  const sound = spoken.end.ok ? Buffer.from(spoken.end.stdout, 'base64') : Buffer.alloc(0)
  t.equal(sound.subarray(0, 4).toString(), 'RIFF')
  t.ok(sound.length > 10_000)
  const cut = await run({
    id: 1,
    program: 'espeak-ng',
    args: ['--stdout', '--', 'Hello'],
    run: { ...limits, max_bytes: 99 },
  })
  t.match(cut.end, { ok: false, too_long: true })
  for (const program of ['sh', '/usr/bin/espeak-ng', '../espeak-ng'])
    t.match(await run({ id: 2, program, args: [], run: limits }), { id: 2, end: { ok: false } }, program)
  // What a process that is no longer ours may send.
  const broken = JSON.parse('{"id": 3, "program": ["espeak-ng"], "args": "-", "run": null}')
  t.match(await run(broken), { id: 3, end: { ok: false } })
})

t.test('one process can have only a few programs run at once', async t => {
  const { run } = programsRunner(['env'])
  const asked = Array.from({ length: 20 }, (_, id) =>
    run({ id, program: 'espeak-ng', args: ['--stdout', '--', 'Hello'], run: limits }),
  )
  const ends = (await Promise.all(asked)).map(({ end }) => end.ok)
  t.equal(ends.filter(Boolean).length, 16)
  t.match(await run({ id: 21, program: 'espeak-ng', args: ['--version'], run: limits }), { end: { ok: true } })
})
