import { databaseName, hostsOf, withoutPassword } from '../../../../core/runtime/database-url.ts'
import t from '../../../support/harness/index.ts'

t.test('a URL of several servers is one URL for each', t => {
  t.same(hostsOf('postgres://ada:s%40cret@db1:5433,[2001:db8::7],%2Frun%2Fpg:5435/voice?sslmode=require'), [
    { name: 'db1:5433', url: 'postgres://ada:s%40cret@db1:5433/voice?sslmode=require' },
    { name: '[2001:db8::7]:5432', url: 'postgres://ada:s%40cret@[2001:db8::7]:5432/voice?sslmode=require' },
    { name: '/run/pg:5435', url: 'postgres://ada:s%40cret@%2Frun%2Fpg:5435/voice?sslmode=require' },
  ])
  t.same(hostsOf('postgresql://db/voice'), [{ name: 'db:5432', url: 'postgresql://db:5432/voice' }])
  t.end()
})

t.test('what is no such URL is refused', t => {
  for (const url of [
    'mysql://db/voice',
    'postgres://db',
    'postgres://db/',
    'postgres:///voice',
    'postgres://db:port/voice',
    'postgres://one,,two/voice',
    'postgres://[::1/voice',
    'postgres://%zz/voice',
    'postgres://db/voice?sslmode=require&password=s%40cret',
  ])
    t.equal(hostsOf(url), null, url)
  t.end()
})

t.test('messages and the words of programs have no password', t => {
  const url = 'postgres://ada:s%40:cret@db1:5433,db2/voice?sslmode=require'
  t.equal(databaseName(url), 'db1:5433,db2/voice')
  t.same(withoutPassword(url), { url: 'postgres://ada@db1:5433,db2/voice?sslmode=require', password: 's@:cret' })
  t.same(withoutPassword('postgres://db/voice'), { url: 'postgres://db/voice', password: null })
  t.end()
})
