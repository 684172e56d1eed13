// The reference for the API: a bare Koa route that returns the same bytes, and one that also runs a bare SQLite
// transaction. main.ts starts it with a file of the bytes and a file for its database. It reports its port.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Database from 'better-sqlite3'
import Koa from 'koa'

const [bytes_file = '', database_file = ''] = process.argv.slice(2)
const bytes = readFileSync(bytes_file, 'utf8')
const database = new Database(database_file)
database.pragma('journal_mode = WAL')
// A PATCH reaches the disk before its answer.
database.pragma('synchronous = FULL')
database.exec('create table if not exists thing (id integer primary key, name text, revision integer)')
database.exec("insert or ignore into thing values (1, 'x', 1)")
const save = database.prepare('update thing set name = ?, revision = revision + 1 where id = 1')
const transaction = database.transaction((name: string) => save.run(name))

const app = new Koa()
app.use(async ctx => {
  if (ctx.method === 'PATCH') {
    const chunks: Buffer[] = []
    for await (const chunk of ctx.req as AsyncIterable<Buffer>) chunks.push(chunk)
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { name: string }
    transaction.immediate(body.name)
  }
  ctx.type = 'application/json; charset=utf-8'
  ctx.body = bytes
})
const server = createServer(app.callback()).listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
process.on('disconnect', () => process.exit(0))
