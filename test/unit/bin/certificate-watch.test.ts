import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { watchCertificates } from '../../../bin/certificate-watch.ts'
import type { TlsOptions } from '../../../core/runtime/certificate.ts'
import { createLog } from '../../../core/runtime/log.ts'
import { tlsOptions } from '../../../signaling/edge/certificates.ts'
import { standingClock } from '../../support/clock.ts'
import t from '../../support/harness/index.ts'

t.test('renewed files are passed on once they fit together, and once only', async t => {
  const folder = t.testdir({ data: { tls: { names: {} } }, first: {}, second: {} })
  const data_dir = join(folder, 'data')
  const put = (name: string, into: string) => copyFileSync(join('fixtures/tls', name), into)
  put('other-name.pem', join(folder, 'first', 'cert.pem'))
  put('leaf.key', join(folder, 'first', 'key.pem'))
  put('good.pem', join(folder, 'second', 'cert.pem'))
  // As a tool for renewal does it: the configured path is a link, and a new link takes its place.
  const live = join(folder, 'live')
  const point = (to: string) => {
    symlinkSync(join(folder, to), `${live}.new`)
    renameSync(`${live}.new`, live)
  }
  point('first')
  const passed: TlsOptions[] = []
  const watch = watchCertificates({
    load: () =>
      tlsOptions({
        tls: { cert_file: join(live, 'cert.pem'), key_file: join(live, 'key.pem') },
        data_dir,
        domain: 'localhost',
        host: '127.0.0.1',
      }),
    clock: standingClock(),
    log: createLog('test', { log_level: 'silent' }),
    renewed: tls => passed.push(tls),
  })
  t.teardown(() => watch.stop())
  await watch.look()
  await watch.look()
  t.equal(passed.length, 0, 'what stood there at the start is known')

  point('second')
  await watch.look()
  t.equal(passed.length, 0, 'a certificate without its key')
  mkdirSync(join(folder, 'own'))
  const { key } = await tlsOptions({ tls: null, data_dir: join(folder, 'own'), domain: 'localhost', host: '127.0.0.1' })
  copyFileSync(join(folder, 'own', 'tls', 'key.pem'), join(folder, 'second', 'key.pem'))
  t.match(key, /PRIVATE KEY/)
  await watch.look()
  t.equal(passed.length, 0, 'a certificate beside the key of another')
  put('leaf.key', join(folder, 'second', 'key.pem'))
  await Promise.all([watch.look(), watch.look()])
  t.same(
    passed.map(({ cert }) => cert),
    [readFileSync('fixtures/tls/good.pem', 'utf8')],
  )

  const own = ['cert.pem', 'key.pem'].map(name => readFileSync(join(folder, 'second', name), 'utf8'))
  const named = join(data_dir, 'tls', 'names', 'app.example.test.pem')
  put('good.pem', named)
  await watch.look()
  t.equal(passed.length, 1, 'a name whose file has no key')
  rmSync(named)
  t.same(own, [passed[0]?.cert, passed[0]?.key])
  point('first')
  await watch.look()
  t.equal(passed.length, 2, 'the way back')
})
