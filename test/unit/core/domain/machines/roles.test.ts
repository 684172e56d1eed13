import { refuseRoles } from '../../../../../bin/roles.ts'
import { namesOfRoles, processesOf, rolesInRow, rolesOf } from '../../../../../core/domain/machines/roles.ts'
import { ConfigError, readSettings } from '../../../../../core/runtime/config.ts'
import t from '../../../../support/harness/index.ts'

t.test('roles of a machine: which go together, and what runs for them', t => {
  const read = (text: string) => {
    const roles = rolesOf(text.split(' ').filter(word => word !== ''))
    return typeof roles === 'string' ? roles : [namesOfRoles(roles), ...processesOf(roles)].join(' / ')
  }
  t.equal(read(''), 'edge signaling media control / edge / media / signaling')
  t.equal(read('control edge'), 'edge control / edge')
  t.equal(read('media signaling'), 'signaling media / edge / media / signaling')
  t.equal(read('control'), 'control')
  t.match(read('media'), /^signaling and media go together/)
  t.match(read('edge signaling'), /^signaling and media go together/)
  t.equal(read('proxy'), 'proxy is none of edge, signaling, media, control')
  const ofRow = (roles: string, takes_calls: 0 | 1) => namesOfRoles(rolesInRow({ roles, takes_calls }))
  t.equal(ofRow('', 1), 'edge signaling media control', 'a version without roles takes calls')
  t.equal(ofRow('', 0), 'control', 'or serves the APIs')
  t.equal(ofRow('edge recorder', 1), 'edge', 'a newer version may know more')
  t.end()
})

t.test('a machine without a way to those that do the rest is refused with a sentence', t => {
  const database = 'postgres://127.0.0.1/strowger'
  const start = (roles: string, more: Record<string, string> = {}) =>
    refuseRoles(readSettings({ STROWGER_DATA: '/nowhere', STROWGER_ROLES: roles, ...more }))
  const shared = { STROWGER_DATABASE_URL: database }
  const linked = { ...shared, STROWGER_LINK: '10.0.0.1:7000' }
  t.throws(() => start('control'), { message: /^STROWGER_ROLES=control: set STROWGER_DATABASE_URL/ })
  t.throws(() => start('edge', shared), { message: /^STROWGER_ROLES=edge: set STROWGER_LINK/ })
  t.throws(() => start('media signaling', shared), { message: /^STROWGER_ROLES=signaling media: set STROWGER_LINK/ })
  const served = { STROWGER_DRACHTIO: '10.0.0.2:9022', STROWGER_DRACHTIO_SECRET: 's' }
  t.throws(() => start('edge', { ...linked, ...served }), { message: /unset STROWGER_DRACHTIO/ })
  t.throws(() => start('media', linked), ConfigError)
  for (const roles of ['edge', 'signaling media', 'edge control']) start(roles, linked)
  start('signaling media', { ...shared, ...served })
  start('control', shared)
  start('')
  t.pass('the others start')
  t.end()
})
