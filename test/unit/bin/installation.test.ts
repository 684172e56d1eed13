import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configurationLines, explained } from '../../../bin/config.ts'
import { findInstallation, requirePresent } from '../../../bin/installation.ts'
import { platformFile, runningPlatform, writePlatform } from '../../../bin/platform-file.ts'
import { loadConfig, readSettings } from '../../../core/runtime/config.ts'
import t from '../../support/harness/index.ts'

// Which installation a command speaks of.

const place = (t: { teardown(work: () => void): void }) => {
  const root = mkdtempSync(join(tmpdir(), 'strowger-installation-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const tree = join(root, 'checkout')
  mkdirSync(tree)
  const found = (env: Record<string, string> = {}, option?: string) =>
    findInstallation({ env, option, tree, system_folder: join(root, 'system') })
  const used = (folder: string) => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'strowger.sqlite'), '')
    return folder
  }
  return { root, tree, found, used }
}

t.test('the first of --data, STROWGER_DATA, .env, the checkout and the system counts', async t => {
  const { root, tree, found, used } = place(t)
  t.match(found(), { data_dir: join(tree, 'data'), source: 'the checkout' }, 'what up makes on a fresh machine')
  const system = used(join(root, 'system'))
  t.match(found(), { data_dir: system, source: 'the system', others: [] }, 'the only one that is used')
  used(join(tree, 'data'))
  t.match(found(), { data_dir: join(tree, 'data'), source: 'the checkout', others: [system] })
  writeFileSync(join(tree, '.env'), 'STROWGER_DATA=./elsewhere\nSTROWGER_HTTP_PORT=9000\nDRACHTIO_IMAGE=x\n')
  t.match(found(), { data_dir: join(tree, 'elsewhere'), source: '.env' }, 'a relative folder begins at the checkout')
  t.same(found().others, [join(tree, 'data'), system], 'a person is told that there are others')
  t.match(found({ STROWGER_DATA: '/a' }), { data_dir: '/a', source: 'STROWGER_DATA' })
  t.match(found({ STROWGER_DATA: '/a' }, '/b'), { data_dir: '/b', source: '--data', env: { STROWGER_DATA: '/b' } })
})

t.test('a variable of the shell wins over .env, and each value says where it comes from', async t => {
  const { tree, found } = place(t)
  writeFileSync(join(tree, '.env'), 'STROWGER_HTTP_PORT=9000\nSTROWGER_LOG=warn\n')
  const { env, origin } = found({ STROWGER_HTTP_PORT: '9100' })
  t.match(readSettings(env), { http_port: 9100, log_level: 'warn', sip_port: 5060 })
  t.same(['STROWGER_HTTP_PORT', 'STROWGER_LOG', 'STROWGER_SIP_PORT'].map(origin), ['environment', '.env', 'default'])
})

t.test('a variable that nothing reads is an error with a suggestion, from the shell and from .env', async t => {
  const { tree, found } = place(t)
  const refused = (env: Record<string, string>, sentence: RegExp) =>
    t.throws(() => found(env), { name: 'ConfigError', message: sentence }, JSON.stringify(env))
  refused(
    { STROWGER_HTTP_PROT: '8080' },
    /^STROWGER_HTTP_PROT is no variable of ours: did you mean STROWGER_HTTP_PORT\?$/,
  )
  refused({ STROWGER_PORT: '8080' }, /STROWGER_HTTP_PORT or .*STROWGER_SIP_PORT or .*STROWGER_WS_PORT/)
  refused({ STROWGER_SIP_PORTS: '5060' }, /did you mean STROWGER_SIP_PORT\?|STROWGER_SIPS_PORT/)
  refused({ STROWGER_ZZZZZZZZ: '1' }, /doctor lists them all/)
  t.doesNotThrow(() => found({ STROWGER_URL: 'http://x', STROWGER_API_KEY: 'k' }), 'what bootstrap --shell exports')
  const link = { STROWGER_SERVICE_HOST: '10.0.0.9', STROWGER_SERVICE_PORT: '80', STROWGER_PORT: 'tcp://10.0.0.9:80' }
  t.doesNotThrow(() => found({ ...link, STROWGER_PORT_80_TCP_ADDR: '10.0.0.9' }), 'a service of Kubernetes')
  writeFileSync(join(tree, '.env'), 'STROWGER_SANDBOXX=off\n')
  refused({}, /^STROWGER_SANDBOXX .*STROWGER_SANDBOX\?$/)
})

t.test('a folder without a database is refused, and nothing is made in it', async t => {
  const { root, found, used } = place(t)
  const folder = join(root, 'empty')
  mkdirSync(folder)
  t.throws(() => requirePresent(found({ STROWGER_DATA: folder })), {
    name: 'StartRefused',
    message: `there is no installation in ${folder} (named by STROWGER_DATA)`,
  })
  t.same(readdirSync(folder), [])
  used(folder)
  t.throws(() => requirePresent(found({}, folder)), { message: /no master\.key: set STROWGER_MASTER_KEY/ })
  t.doesNotThrow(() => requirePresent(found({ STROWGER_MASTER_KEY: 'ab'.repeat(32) }, folder)))
  t.same(readdirSync(folder), ['strowger.sqlite'], 'a second key would make every sealed value unreadable')
})

t.test('a running platform says what it was started with; the file of a dead one counts for nothing', async t => {
  const { root, found, used } = place(t)
  const data_dir = used(join(root, 'data'))
  const env = {
    STROWGER_DATA: data_dir,
    STROWGER_HTTP_PORT: '9000',
    STROWGER_BIND: '0.0.0.0',
    STROWGER_SMS_TOKEN: 'T0KEN',
  }
  const config = loadConfig(env)
  writePlatform(config, env, '2026-11-25T00:00:00.000Z')
  const file = platformFile(config.run_dir)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.notMatch(readFileSync(file, 'utf8'), /T0KEN/)
  t.match(JSON.parse(readFileSync(file, 'utf8')), {
    ...{ pid: process.pid, version: /^\d/, http: 'http://127.0.0.1:9000', base_url: 'http://127.0.0.1:9000' },
    settings: { STROWGER_HTTP_PORT: '9000', STROWGER_BIND: '0.0.0.0' },
  })
  writeFileSync(join(config.run_dir, 'supervisor.pid'), `${process.pid}\n`)
  t.equal(runningPlatform(data_dir), null, 'no supervisor runs')
  t.match(readSettings(found({ STROWGER_DATA: data_dir, STROWGER_HTTP_PORT: '9100' }).env), { http_port: 9100 })
})

t.test('config explain tells a variable by any spelling, and of a secret only whether and where it is set', async t => {
  const { root, found } = place(t)
  const token = join(root, 'token')
  writeFileSync(token, 'pa55word')
  const here = found({ STROWGER_HTTPS_PORT: '8443', STROWGER_METRICS_TOKEN_FILE: token })
  for (const key of ['STROWGER_HTTPS_PORT', 'https-port', 'https_port']) {
    const lines = explained(key, here)
    t.equal(lines[0], 'STROWGER_HTTPS_PORT')
    t.match(lines.join('\n'), /value +8443 \(environment\)\n +read by .*control/)
  }
  const secret = explained('metrics-token', here).join('\n')
  t.match(secret, /value +\(set\) \(file\)\n[\s\S]*STROWGER_METRICS_TOKEN_FILE=PATH/)
  t.notMatch(`${secret}${configurationLines(here).join()}`, /pa55word/)
  t.throws(() => explained('http-prot', here), { message: /did you mean STROWGER_HTTP_PORT\?/ })
  t.throws(() => found({ STROWGER_HTTP_PROT: '1', STROWGER_SMS_TOKEN_FILE: '/none', STROWGER_LGO: 'x' }), {
    message: /^STROWGER_HTTP_PROT.*\nSTROWGER_LGO.*\nSTROWGER_SMS_TOKEN_FILE: \/none cannot be read/,
  })
})
