import { type Revised, revisionOf, writeInTurn } from '../../../../../control/console/lib/revisions.ts'
import t from '../../../../support/harness/index.ts'

/** A row as the API keeps it: a write on any other revision than its own is refused. */
function kept(id: string) {
  let revision = 1
  let open = (): void => undefined
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return {
    id,
    open: () => open(),
    get revision() {
      return revision
    },
    changeByAnother: () => void revision++,
    async write(on: number) {
      await opened
      if (on !== revision) throw new Error('412')
      revision += 2
      return { answer: `revision ${revision}`, revision }
    },
  }
}

const seen = ({ id }: { readonly id: string }, revision: number): Revised => ({ id, revision })

t.test('two quick writes of a row follow each other, though the page shows the row as it was before both', async t => {
  const row = kept('quick')
  const both = [writeInTurn(seen(row, 1), row.write), writeInTurn(seen(row, 1), row.write)]
  row.open()
  t.same(await Promise.all(both), ['revision 3', 'revision 5'])
  t.equal(await writeInTurn(seen(row, 3), row.write), 'revision 7', 'it shows the answer of the first')
})

t.test('a write on what somebody else changed is refused, before and after a write of this page', async t => {
  const row = kept('shared')
  row.open()
  row.changeByAnother()
  await t.rejects(writeInTurn(seen(row, 1), row.write), /412/)
  t.equal(await writeInTurn(seen(row, 2), row.write), 'revision 4', 'the page has read it again')
  row.changeByAnother()
  await t.rejects(writeInTurn(seen(row, 4), row.write), /412/)
  await t.rejects(writeInTurn(seen(row, 2), row.write), /412/)
  t.equal(await writeInTurn(seen(row, 5), row.write), 'revision 7')
})

t.test('a refused write does not keep later ones of its row, or any of another row', async t => {
  const row = kept('refused')
  const other = kept('other')
  const refused = writeInTurn(seen(row, 9), row.write)
  const after = writeInTurn(seen(row, 1), row.write)
  other.open()
  t.equal(await writeInTurn(seen(other, 1), other.write), 'revision 3', 'another row does not wait')
  row.open()
  await t.rejects(refused, /412/)
  t.equal(await after, 'revision 3')
})

t.test('an ETag of the API is one quoted number', async t => {
  t.same(['"12"', 'W/"12"', '12', '"x"', null].map(revisionOf), [12, null, null, null, null])
})
