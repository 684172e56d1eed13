import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { CONTENTS, GENERATED } from '../../../control/guides/contents.ts'
import { Library } from '../../../control/guides/library.ts'
import { NUMBERS } from '../../../control/voice/errors.ts'
import { CALL_NUMBERS } from '../../../core/domain/calls/call-numbers.ts'
import { REASONS, type ReasonEntry } from '../../../core/domain/reasons/index.ts'
import { checkDocument } from '../../../markup/check.ts'
import { controlPlane } from '../../support/control-plane.ts'
import t from '../../support/harness/index.ts'

const library = new Library('docs')

t.test('every page of the menu exists, and every guide is in the menu', async t => {
  const listed = CONTENTS.flatMap(({ pages }) => pages)
  for (const name of listed) t.ok(library.guide(name), name)
  const guides = library.names.filter(name => existsSync(`docs/guides/${name}.md`))
  t.same(
    guides.filter(name => !listed.includes(name)),
    [],
  )
})

t.test('a link of a document leads to a file that exists and to a heading of its page', async t => {
  for (const name of library.names) {
    const path = ['guides', '.', 'decisions'].map(folder => join('docs', folder, `${name}.md`)).find(existsSync)
    if (path === undefined) continue
    const text = readFileSync(path, 'utf8')
    for (const [, href = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|mailto:)/.test(href)) continue
      const [file = '', anchor] = href.split('#')
      const target = file === '' ? path : normalize(join(dirname(path), file))
      t.ok(existsSync(target), `${path} links ${href}`)
      if (anchor === undefined || !target.endsWith('.md')) continue
      const page = library.guide(target.replace(/^.*\//, '').replace('.md', ''))
      t.ok(page?.sections.some(section => section.anchor === anchor) ?? true, `${path} links ${href}`)
    }
  }
})

/** The pages of the documentation that the sources of the console link. */
const consoleLinks = (): string[] =>
  consoleTexts().flatMap(text => [...text.matchAll(/"(\/docs[^"#?]*)/g)].map(([, path = '']) => path))

function consoleTexts(): string[] {
  const folder = 'control/console'
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(file => /\.tsx?$/.test(file))
  return files.map(file => readFileSync(join(folder, file), 'utf8'))
}

t.test('a link of the console to a page of its own leads to one', async t => {
  const table = readFileSync('control/console/app.tsx', 'utf8')
  const pages = [...table.matchAll(/\['(\/[^']*)', async \(\) =>/g)].map(([, path = '']) => path.split('/'))
  const leads = (to: string): boolean => {
    const given = to.split('/')
    return pages.some(
      page => page.length === given.length && page.every((part, at) => part.startsWith(':') || part === given[at]),
    )
  }
  const links = consoleTexts()
    .flatMap(text => [...text.matchAll(/\b(?:hrefOf|go)\((['`])(\/.*?)\1/g)])
    // A template within a template ends too early.
    .filter(([, , to = '']) => !/\$\{[^}]*$/.test(to))
  for (const [link, , to = ''] of links)
    t.ok(leads(to.replace(/\$\{[^}]*\}/g, 'x').replace(/\?.*$/, '')), `${link} leads to no page`)
  t.ok(links.length > 60, `${links.length} links`)
  t.notOk(leads('/nowhere'))
})

t.test('the platform serves the guides without a script, and finds words in them', async t => {
  const { base_url } = await controlPlane(t)
  const page = async (path: string) => {
    const response = await fetch(`${base_url}${path}`)
    return {
      status: response.status,
      policy: response.headers.get('content-security-policy'),
      text: await response.text(),
    }
  }
  /** Every page of the documentation that a link leads to, with the anchors that it has. */
  const seen = new Map<string, ReadonlySet<string>>()
  const links: { readonly path: string; readonly anchor: string; readonly on: string }[] = []
  const left = ['/docs/guides']
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (seen.has(path)) continue
    const { status, policy, text } = await page(path)
    t.equal(status, 200, path)
    if (path !== '/docs') t.match(policy, /^default-src 'none'; style-src/, path)
    seen.set(path, new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)))
    for (const [, found = '', anchor = ''] of text.matchAll(/href="((?:\/docs[^"#?]*)?)(?:#([^"]*))?"/g)) {
      links.push({ path: found || path, anchor: decodeURIComponent(anchor), on: path })
      if (found !== '' && !found.startsWith('/docs/assets/')) left.push(found)
    }
  }
  for (const { path, anchor, on } of links)
    if (anchor !== '') t.ok(seen.get(path)?.has(anchor), `${on} links ${path}#${anchor}`)
  for (const { path } of GENERATED) t.ok(seen.has(path), path)
  const numbers = [...Object.keys(NUMBERS), ...Object.keys(CALL_NUMBERS)]
  for (const { voice, sip_number } of Object.values<ReasonEntry>(REASONS))
    numbers.push(...[voice, sip_number].filter(number => number !== null).map(String))
  for (const code of [...numbers, ...Object.keys(REASONS)]) t.ok(seen.has(`/docs/errors/${code}`), code)
  for (const path of consoleLinks()) t.ok(seen.has(path), `the console links ${path}`)
  for (const part of [
    '/docs/endpoints/trunks',
    '/docs/operator/carriers',
    '/docs/voice/Calls',
    '/docs/errors/no_route',
  ])
    t.ok(seen.has(part), part)
  t.match((await page('/docs/guides/quick-start')).text, /<h2 id="python">Python<\/h2>/)

  const found = await page('/docs/search?q=firewall+closes')
  t.match(found.text, /<a href="\/docs\/guides\/troubleshooting#by-symptom">/)
  t.match((await page('/docs/search?q=suspend+trunk')).text, /<a href="\/docs\/endpoints\/trunks#postTrunks/)
  const strange = await page(`/docs/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  t.equal(strange.status, 200)
  t.notOk(strange.text.includes('<script'))
  t.equal((await page('/docs/guides/nothing')).status, 404)
  t.equal((await page('/docs/guides/..%2f..%2fpackage')).status, 404)
})

t.test('each document in a guide passes the check that calls pass', async t => {
  let documents = 0
  for (const name of library.names) {
    const path = `docs/guides/${name}.md`
    if (!existsSync(path)) continue
    for (const [document] of readFileSync(path, 'utf8').matchAll(/<Response>[^$]*?<\/Response>/g)) {
      documents++
      t.same(checkDocument(document, { url: 'https://example.com/' }).advice, [], `${path}: ${document}`)
    }
  }
  t.ok(documents >= 3)
})

t.test('the guide to fraud asks about a call as the API does', async t => {
  const w = await controlPlane(t)
  const [, path = '', body = ''] =
    /^POST (\/v1\S+)\n(\{.*\})$/m.exec(readFileSync('docs/guides/fraud.md', 'utf8')) ?? []
  t.match(await w.ask('POST', path, { body: JSON.parse(body) }), { status: 200, body: { called: '+2348030000001' } })
})
