import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from '../../support/harness/index.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

interface Kamailio {
  readonly host: string
  readonly port: number
  printed(): string
}

/** What a configuration may name. */
interface Places {
  readonly host: string
  readonly port: number
}

const MODULES = ['sl', 'tm', 'rr', 'pv', 'maxfwd', 'siputils', 'textops', 'xlog', 'auth', 'usrloc', 'registrar']

/** Starts Debian's Kamailio on UDP at an address. `route` is the body of its request route, behind the usual checks. */
export async function kamailio(t: Test, host: string, route: (at: Places) => string): Promise<Kamailio> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-kamailio-'))
  const port = await freePort()
  const file = join(folder, 'kamailio.cfg')
  writeFileSync(file, configuration({ host, port }, route({ host, port })))
  const child = spawn('kamailio', ['-DD', '-E', '-f', file, '-Y', folder, '-m', '64', '-M', '8'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      printed += chunk
    })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await exited
    rmSync(folder, { recursive: true, force: true })
  })
  await until('Kamailio is ready', () => {
    if (child.exitCode !== null) throw new Error(`Kamailio ended:\n${printed}`)
    return printed.includes('interop: ready')
  })
  return { host, port, printed: () => printed }
}

const configuration = ({ host, port }: Places, route: string): string =>
  [
    ...['debug=2', 'log_stderror=yes', 'fork=yes', 'children=2', 'auto_aliases=no', `listen=udp:${host}:${port}`],
    ...['disable_tcp=yes', 'mpath="/usr/lib/x86_64-linux-gnu/kamailio/modules:/usr/lib/kamailio/modules"'],
    ...MODULES.map(name => `loadmodule "${name}.so"`),
    ...['modparam("rr", "append_fromtag", 1)', 'modparam("usrloc", "db_mode", 0)'],
    'modparam("registrar", "min_expires", 60)',
    'event_route[core:worker-one-init] { xlog("L_ERR", "interop: ready\\n"); }',
    'request_route {',
    '  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }',
    '  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }',
    '  if (has_totag()) {',
    '    if (loose_route()) { t_relay(); exit; }',
    '    if (is_method("ACK")) { if (t_check_trans()) t_relay(); exit; }',
    '    sl_send_reply("404", "Not here"); exit;',
    '  }',
    '  if (is_method("OPTIONS")) { sl_send_reply("200", "OK"); exit; }',
    route,
    '}',
    '',
  ].join('\n')
