import {
  fileKey,
  OTHER_VARIABLES,
  SETTING_NAMES,
  type SettingName,
  settingOf,
} from '../../src/config/settings.ts'

/** docs/reference/configuration.md, printed from the table. */
export function configurationPage(): string {
  return `<!-- Printed from packages/server/src/config/settings.ts: UPDATE=1 node --test packages/server/src/config.test.ts -->
# Configuration

A setting comes from the command line, else from the environment, else from the config file, else it has its default.
If a variable or key is unknown or a value is invalid, the server refuses to start and names all of them at once.

| variable | in the config file | default | meaning |
|---|---|---|---|
${SETTING_NAMES.map(row).join('\n')}

Other variables:

| variable | meaning |
|---|---|
${Object.entries(OTHER_VARIABLES)
  .map(([name, help]) => `| \`${name}\` | ${help} |`)
  .join('\n')}
| \`ISLET_TEST_*\` | Read by the tests. |

The config file is a JSON object:

\`\`\`json
{ "host": "0.0.0.0", "port": 7400, "maxSandboxes": 200, "networkAllow": ["10.1.0.0/16"], "drainTimeout": "30s" }
\`\`\`
`
}

function row(name: SettingName): string {
  const { env, envOnly, default: value, defaultText, help } = settingOf(name)
  const shown = defaultText ?? (typeof value === 'string' && value !== '' ? `\`${value}\`` : 'none')
  return `| \`${env}\` | ${envOnly ? '' : `\`${fileKey(name)}\``} | ${shown} | ${help} |`
}
