import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hindrance, isRoot } from '../../../bin/least-privilege.ts'

t.test('what belongs to another user is named as what hinders root to be one among others', async t => {
  const data_dir = t.testdir({ run: {}, recordings: {} })
  const config = { data_dir, run_dir: join(data_dir, 'run'), tls: null }
  t.equal(hindrance(config), null)
  // Who is not root can give nothing away, and has nothing to drop.
  if (!isRoot()) return
  chownSync(join(data_dir, 'recordings'), 12_345, 12_345)
  t.equal(hindrance(config), `${join(data_dir, 'recordings')} belongs to another user`)
  const own = join(data_dir, 'own')
  mkdirSync(own)
  chownSync(own, 12_345, 12_345)
  const files = { cert_file: join(own, 'cert.pem'), key_file: join(own, 'key.pem') }
  t.match(hindrance({ ...config, tls: files }), /cert\.pem/)
})
