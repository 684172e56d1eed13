import { ProjectPlaces } from '../../../../core/runtime/project-places.ts'
import t from '../../../support/harness/index.ts'

const all = (places: ProjectPlaces, project_id: string): number => {
  for (let taken = 0; ; taken++) if (!places.take(project_id)) return taken
}

t.test('a project may hold as many places as are free, so that one that comes later gets some', async t => {
  const places = new ProjectPlaces(12)
  t.equal(all(places, 'a'), 6)
  t.same(places.full(), ['a'])
  t.equal(all(places, 'b'), 3)
  t.equal(all(places, 'c'), 2, 'the third leaves one')
  t.equal(all(places, 'd'), 1)
  t.equal(places.free, 0)
  places.give('b')
  t.notOk(places.take('a'), 'who has more than are free waits')
  t.equal(all(places, 'e'), 1)
  for (let held = 0; held < 6; held++) places.give('a')
  t.equal(all(places, 'a'), 3, 'places that were given back are for all')
})

t.test('rows that fit are chosen in their order, and take no place yet', async t => {
  const places = new ProjectPlaces(4)
  const rows = ['a', 'a', 'a', 'b', 'b'].map((project_id, n) => ({ project_id, n }))
  const chosen = () => places.fitting(rows).map(({ n }) => n)
  t.same(chosen(), [0, 1, 3])
  t.same(chosen(), [0, 1, 3])
  t.ok(places.take('a'))
  t.same(chosen(), [0, 3])
})
