// The page /docs: the API description, rendered by Swagger UI, which is served from its package. Nothing is loaded from elsewhere.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const packageFolder = (): string =>
  dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

/** Files of the package by the name under /docs/, with their content types. The licence goes with them. */
export const PACKAGE_FILES: readonly { name: string; type: string }[] = [
  { name: 'swagger-ui-bundle.js', type: 'text/javascript; charset=utf-8' },
  { name: 'swagger-ui.css', type: 'text/css; charset=utf-8' },
  { name: 'LICENSE', type: 'text/plain; charset=utf-8' },
  { name: 'NOTICE', type: 'text/plain; charset=utf-8' },
  { name: 'swagger-ui-bundle.js.LICENSE.txt', type: 'text/plain; charset=utf-8' },
]

/** @param name of one of these files. */
export const readPackageFile = (name: string): Buffer => readFileSync(join(packageFolder(), name))

/**
 * Scripts and requests of this server alone. Swagger UI sets styles on its elements and has images in its stylesheet, so these
 * two are open by a step.
 */
export const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

export const PAGE_HTML = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Mintlake API</title>
<link rel="icon" href="/favicon.ico">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/page.css">
<script src="/docs/theme.js"></script>
</head>
<body>
<nav>
<a href="/" class="back"><strong>← Mintlake</strong> console</a>
<a href="/skill.md">for agents</a>
<a href="/streams.md">streams</a>
<a href="/llms.txt">llms.txt</a>
<a href="/openapi.json">openapi.json</a>
<a href="/api/v1/analysis/schema">schema of a submission</a>
<a href="/health">health</a>
<a href="/docs/LICENSE">licence of this viewer</a>
</nav>
<div id="reference"></div>
<noscript>This page needs JavaScript. The same in text: <a href="/skill.md">/skill.md</a></noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/page.js"></script>
</body>
</html>
`

export const PAGE_CSS = `body { margin: 0; background: #f7f8fa; }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 14px 16px; background: #fff; border-bottom: 1px solid #e3e7ec; font: 14px system-ui, sans-serif; }
nav a { color: #5b6573; text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav .back { margin-right: auto; }
nav strong { color: #15191f; }
@media (max-width: 720px) {
  nav { font-size: 13px; }
  nav .back { flex-basis: 100%; }
}
.dark-mode body { background: #0e1116; }
.dark-mode nav { background: #161a21; border-color: #262d37; }
.dark-mode nav a { color: #9aa5b4; }
.dark-mode nav strong { color: #e8ecf1; }
html.dark-mode, html.dark-mode .swagger-ui { background: #0e1116; }
`

/** Light or dark as the console is: what was chosen there, else what the system prefers. Loaded before the page is drawn. */
export const THEME_SCRIPT = `const prefersDark = matchMedia('(prefers-color-scheme: dark)')
function applyTheme() {
  const chosen = localStorage.getItem('mintlake-theme')
  const isDark = chosen === 'dark' || (chosen !== 'light' && prefersDark.matches)
  document.documentElement.classList.toggle('dark-mode', isDark)
  document.documentElement.style.colorScheme = isDark ? 'dark' : 'light'
}
applyTheme()
prefersDark.addEventListener('change', applyTheme)
addEventListener('storage', applyTheme)
`

/** No address of a validator: the description is not sent anywhere. */
export const PAGE_SCRIPT = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
})
`
