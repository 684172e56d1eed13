import arrowLeft from 'lucide/dist/esm/icons/arrow-left.mjs'
import arrowLeftRight from 'lucide/dist/esm/icons/arrow-left-right.mjs'
import bell from 'lucide/dist/esm/icons/bell.mjs'
import bug from 'lucide/dist/esm/icons/bug.mjs'
import check from 'lucide/dist/esm/icons/check.mjs'
import clipboardList from 'lucide/dist/esm/icons/clipboard-list.mjs'
import codeXml from 'lucide/dist/esm/icons/code-xml.mjs'
import copy from 'lucide/dist/esm/icons/copy.mjs'
import creditCard from 'lucide/dist/esm/icons/credit-card.mjs'
import download from 'lucide/dist/esm/icons/download.mjs'
import globe from 'lucide/dist/esm/icons/globe.mjs'
import hash from 'lucide/dist/esm/icons/hash.mjs'
import headphones from 'lucide/dist/esm/icons/headphones.mjs'
import keyRound from 'lucide/dist/esm/icons/key-round.mjs'
import layoutDashboard from 'lucide/dist/esm/icons/layout-dashboard.mjs'
import logOut from 'lucide/dist/esm/icons/log-out.mjs'
import menu from 'lucide/dist/esm/icons/menu.mjs'
import moon from 'lucide/dist/esm/icons/moon.mjs'
import pause from 'lucide/dist/esm/icons/pause.mjs'
import phone from 'lucide/dist/esm/icons/phone.mjs'
import play from 'lucide/dist/esm/icons/play.mjs'
import plus from 'lucide/dist/esm/icons/plus.mjs'
import server from 'lucide/dist/esm/icons/server.mjs'
import shieldCheck from 'lucide/dist/esm/icons/shield-check.mjs'
import slidersHorizontal from 'lucide/dist/esm/icons/sliders-horizontal.mjs'
import sun from 'lucide/dist/esm/icons/sun.mjs'
import triangleAlert from 'lucide/dist/esm/icons/triangle-alert.mjs'
import user from 'lucide/dist/esm/icons/user.mjs'
import users from 'lucide/dist/esm/icons/users.mjs'
import webhook from 'lucide/dist/esm/icons/webhook.mjs'
import x from 'lucide/dist/esm/icons/x.mjs'

/** Icons of Lucide, each imported by itself: the package has thousands. */
const ICONS = {
  overview: layoutDashboard,
  calls: phone,
  alerts: bell,
  trunks: arrowLeftRight,
  numbers: hash,
  applications: codeXml,
  policies: shieldCheck,
  destinations: globe,
  subaccounts: users,
  billing: creditCard,
  audit: clipboardList,
  keys: keyRound,
  webhooks: webhook,
  platform: server,
  members: user,
  settings: slidersHorizontal,
  debugger: bug,
  copy,
  check,
  cross: x,
  menu,
  plus,
  sun,
  moon,
  out: logOut,
  phone,
  play,
  pause,
  download,
  back: arrowLeft,
  alert: triangleAlert,
  listen: headphones,
} as const

export type IconName = keyof typeof ICONS

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={ICONS[name]} />
  </svg>
)
