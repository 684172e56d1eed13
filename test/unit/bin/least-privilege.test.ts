import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { hindrance, hindranceOfUsers, isRoot } from '../../../bin/least-privilege.ts'
import t from '../../support/harness/index.ts'

t.test('names the file of another user that prevents root from dropping its capabilities', async t => {
  const data_dir = t.testdir({ run: {}, tls: {} })
  const config = { data_dir, run_dir: join(data_dir, 'run'), tls: null }
  t.equal(hindrance(config), null)
  // Only root can change owners, and only root has rights to drop.
  if (!isRoot()) return
  chownSync(join(data_dir, 'tls'), 12_345, 12_345)
  t.equal(hindrance(config), `${join(data_dir, 'tls')} belongs to another user`)
  const own = join(data_dir, 'own')
  mkdirSync(own)
  chownSync(own, 12_345, 12_345)
  const files = { cert_file: join(own, 'cert.pem'), key_file: join(own, 'key.pem') }
  t.match(hindrance({ ...config, tls: files }), /cert\.pem/)
})

t.test('RTP ports below 1024 prevent separate users', async t => {
  const data_dir = t.testdir({ run: {} })
  const place = { data_dir, run_dir: join(data_dir, 'run'), tls: null, users: 60_800 }
  t.match(hindranceOfUsers({ ...place, rtp_ports: { first: 1000, last: 2000 } }, 60_800), /STROWGER_RTP_PORTS/)
  t.same(readdirSync(place.run_dir), [], 'the check leaves no files behind')
})
