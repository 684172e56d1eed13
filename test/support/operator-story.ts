import type { Page } from 'playwright-core'
import { stockNumbers } from '../../core/state/configuration/numbers.ts'
import { signIn } from './console.ts'
import type { Test } from './harness/index.ts'
import { until } from './wait.ts'
import type { World } from './world.ts'

/** A new customer goes live by what the operator's pages offer: carrier, rates, number, money, go-live. */
export async function operatorStory(t: Test, w: World, page: Page): Promise<void> {
  const { db } = w.state
  const menu = (name: string) =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click()
  const button = (name: string) => page.locator('main').getByRole('button', { name, exact: true }).first()
  const dialog = page.getByRole('dialog')
  const fill = async (label: string, text: string) => dialog.getByLabel(label, { exact: true }).first().fill(text)
  const send = async (name: string) => dialog.getByRole('button', { name, exact: true }).click()
  const row = (text: string) => page.locator('main').getByRole('row').filter({ hasText: text })

  await menu('Customers')
  await button('Add a customer').click()
  await fill('Name', 'Blossom')
  await fill('Contact', 'bola@blossom.example')
  await fill('Time zone', 'Africa/Lagos')
  await send('Add')
  const invitation = await dialog.locator('[data-secret]').innerText()
  await dialog.getByRole('link', { name: 'Open the project' }).click()
  await page.getByRole('heading', { name: 'Blossom', level: 1 }).waitFor()
  const { pathname } = new URL(page.url())
  const project_id = pathname.split('/').at(-1) ?? ''
  const project = () => db.selectFrom('project').selectAll().where('id', '=', project_id).executeTakeFirstOrThrow()
  t.equal((await project()).sandbox, 1)
  const open = (point: string) => page.locator(`[data-point="${point}"][data-open="true"]`)
  await open('number').waitFor()
  await open('balance').waitFor()
  t.ok(await button('Go live').isDisabled(), 'nobody goes live with an open point')

  await menu('Carriers')
  await button('Add a carrier').click()
  await fill('Name', 'Long Lines')
  await fill('Targets', 'sip:203.0.113.9 carrier-pigeon')
  await send('Add the carrier')
  await dialog
    .getByText(/transport must be one of/)
    .first()
    .waitFor()
  await fill('Targets', 'sip:203.0.113.9 udp 1 100')
  await fill('Routes', 'any 4.5 10')
  await send('Add the carrier')
  await page.getByRole('heading', { name: 'Long Lines', level: 1 }).waitFor()
  t.match(await db.selectFrom('carrier_route').selectAll().where('cost_minor', '=', 450).execute(), [{ prefix: '' }])

  await menu('Price books')
  await button('Import a rate list').click()
  await fill('Rate list, CSV', 'prefix,label,rate,unit,initial,additional\n234,Nigeria,900,minute,60,60\n')
  await dialog.getByLabel('For', { exact: true }).selectOption({ value: project_id })
  await send('Compare')
  await dialog.locator('.diff .plus').filter({ hasText: 'Nigeria' }).waitFor()
  await fill('Name of the book', 'Blossom retail')
  await send('Import')
  await row('Blossom retail').waitFor()

  await menu('Number stock')
  await button('Add numbers').click()
  await fill('First number', '+2342018765000')
  await fill('Last number', '+2342018765002')
  await send('Add')
  await row('+2342018765002').getByText('Available').waitFor()
  // More free numbers before these than the list of a dialog has.
  const others = Array.from({ length: 210 }, (_, at) => `+2342010876${String(at).padStart(3, '0')}`)
  await w.state.transaction(trx => stockNumbers(trx, others, 0, new Date().toISOString()))

  await menu('Customers')
  await row('Blossom').getByRole('link').first().click()
  await page.getByRole('heading', { name: 'Projects', level: 2 }).waitFor()
  await row('Blossom').getByRole('link').first().click()
  await button('Give a number').click()
  await fill('Begins with', '+2342018765')
  await dialog.getByLabel('Number', { exact: true }).selectOption({ label: '+2342018765000' })
  await send('Give')
  await row('+2342018765000').waitFor()
  await button('Top up').click()
  await fill('Amount, ₦', '50')
  await fill('Reason', 'first payment')
  await send('Book')
  await row('Top up').getByText('₦50.00').first().waitFor()
  await until('every point is closed', async () => !(await button('Go live').isDisabled()))
  await button('Go live').click()
  await fill('Reason', 'contract signed')
  await send('Go live')
  await page.locator('main').getByText('Live', { exact: true }).waitFor()
  await page.locator('[data-checklist]').waitFor({ state: 'detached' })

  t.match(await project(), { sandbox: 0, status: 'active' })
  const held = await db.selectFrom('number').select('e164').where('project_id', '=', project_id).execute()
  t.same(held, [{ e164: '+2342018765000' }])
  const told = await db.selectFrom('audit_event').selectAll().where('action', '=', 'project.went_live').execute()
  t.match(told.map(event => event.detail).slice(-1), ['contract signed'])

  const visitor = await page.context().browser()?.newContext()
  if (!visitor) throw new Error('the page has no browser')
  const link = await visitor.newPage()
  await link.goto(`${w.base_url}/console/invitation${new URL(invitation).hash}`)
  await link.getByLabel('Password').fill('a password of her own')
  await link.getByRole('button', { name: 'Accept the invitation' }).click()
  await link.getByText('You are a member now.').waitFor()
  const person = { email: 'bola@blossom.example', password: 'a password of her own' }
  const theirs = await signIn(visitor, { base_url: w.base_url, ...person })
  await theirs.locator('[data-project-state]').getByText('Live').waitFor()
  t.equal(await theirs.getByRole('link', { name: 'Number stock' }).count(), 0)
  await theirs.goto(`${w.base_url}/console/operator/customers`)
  await theirs.getByText('Only an operator of the platform may do this.').waitFor()
  t.equal(await theirs.locator('main').getByRole('row').count(), 0)
  await visitor.close()
}
