import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { hindrance, hindranceOfUsers, isRoot } from '../../../bin/least-privilege.ts'

t.test('what belongs to another user is named as what hinders root to be one among others', async t => {
  const data_dir = t.testdir({ run: {}, tls: {} })
  const config = { data_dir, run_dir: join(data_dir, 'run'), tls: null }
  t.equal(hindrance(config), null)
  // Who is not root can give nothing away, and has nothing to drop.
  if (!isRoot()) return
  chownSync(join(data_dir, 'tls'), 12_345, 12_345)
  t.equal(hindrance(config), `${join(data_dir, 'tls')} belongs to another user`)
  const own = join(data_dir, 'own')
  mkdirSync(own)
  chownSync(own, 12_345, 12_345)
  const files = { cert_file: join(own, 'cert.pem'), key_file: join(own, 'key.pem') }
  t.match(hindrance({ ...config, tls: files }), /cert\.pem/)
})

t.test('RTP ports that only root may open hinder the media process to be another user', async t => {
  const data_dir = t.testdir({ run: {} })
  const place = { data_dir, run_dir: join(data_dir, 'run'), tls: null, users: 60_800 }
  t.match(hindranceOfUsers({ ...place, rtp_ports: { first: 1000, last: 2000 } }, 60_800), /STROWGER_RTP_PORTS/)
  t.same(readdirSync(place.run_dir), [], 'and a look leaves nothing behind')
})
