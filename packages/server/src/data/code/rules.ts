// Patterns that indicate a language, with their weights. Patterns are global: the number of matches counts too, up to a bound.
// The code is hostile. detect.ts bounds its length, its lines and its white space. The cost of a pattern must be at most quadratic
// in a line: a repeated part begins with a character that cannot end it, and a part that may span lines is bounded.
import type { Plain } from './detect.ts'

export interface Rule {
  weight: number
  pattern: RegExp
  /** The form of the code that it is tried on. Default: bare. */
  sees?: keyof Plain
}

const rule = (weight: number, pattern: RegExp, sees: keyof Plain = 'bare'): Rule => ({
  weight,
  pattern,
  sees,
})

export const PYTHON: readonly Rule[] = [
  rule(6, /^[ \t]*from\s+[\w.]+\s+import\b/gm),
  rule(5, /^[ \t]*import\s+[\w.]+(?:\s+as\s+\w+)?(?:[ \t]*,[ \t]*[\w.]+(?:\s+as\s+\w+)?)*[ \t]*(?:$|[;#])/gm),
  rule(5, /^[ \t]*(?:async\s+)?def\s+\w+\s*\(/gm),
  rule(5, /^[ \t]*class\s+\w+\s*(?:\([^)\n]*\))?\s*:/gm),
  rule(5, /\b__(?:name|main|init|file|dict)__\b/g),
  rule(
    4,
    /^[ \t]*(?:if|elif|else|while|with|for|try|except|finally|async for|async with)\b[^\n{;?]*:[ \t]*(?:$|#|[\w"'([])/gm,
  ),
  rule(4, /(?:^|[\s:;=(,])print[ \t]*\(/gm),
  rule(4, /[[({][^\n[({]*\bfor\s+[\w, ]{1,100}\s+in\s/g),
  rule(3, /(?:^|[\s(=,+[{:])(?:f|rf|fr|b|rb|br|r)["']/gim),
  rule(3, /"""|'''/g),
  rule(3, /^[ \t]*(?:pass|raise\b.*|except\b.*|print\s+"".*)$/gm),
  rule(3, /\b(?:asyncio|isinstance|enumerate|lambda\b[^\n]*:)/g),
  rule(3, /(?:^|[^.\w])(?:range|len|str|int|dict|list|tuple|sorted|sum)\(/g),
  rule(2, /\b(?:None|True|False|self)\b/g),
  rule(2, /\b(?:not in|is not|is None|not \w)/g),
  rule(2, /^[ \t]*(?:del|global|nonlocal|assert|yield)\s+\w/gm),
  rule(
    2,
    /^[A-Za-z_][\w.[\]]*(?:[ \t]*,[ \t]*[A-Za-z_]\w*)*(?:[ \t]*:[ \t]*\w[\w[\], ]*)?[ \t]+(?:[-+*/|&%]|\*\*|\/\/)?=\s+(?!.*;[ \t]*$)\S/gm,
  ),
  rule(1, /^[ \t]*@\w[\w.]*/gm),
  rule(1, /^[ \t]*#/gm),
  rule(-4, /^[ \t]*\/\//gm),
]

export const JAVASCRIPT: readonly Rule[] = [
  rule(6, /\bconsole\.(?:log|error|warn|info|debug|table|dir|time)\b/g),
  rule(6, /^[ \t]*import\s+[\w*{$][^;"'`]{0,1000}?\bfrom\s*["']|^[ \t]*import\s*["']/gm),
  rule(6, /^[ \t]*export\s+(?:default|const|let|function|class|async|type|interface|\{|\*)/gm),
  rule(6, /\b(?:Deno|Bun)\.\w/g),
  rule(5, /\b(?:require|import)\s*\(\s*["'`]/g),
  rule(5, /(?:^|[;{(]\s*)(?:const|var)\s+[\w${[]/gm),
  rule(5, /^[ \t]*(?:export\s+)?class\s+\w+(?:\s+extends\s+[\w.]+)?\s*\{/gm),
  rule(5, /\bfunction\s*\*?\s*[\w$]*\s*\(\s*[\w${[.][^)\n]*\)\s*\{/g),
  rule(5, /(?:^|[=(,:]\s*)(?:async\s+)?function\s*\*?\s*\(/gm),
  rule(4, /=>/g),
  rule(
    4,
    /\b(?:module\.exports|process\.(?:env|argv|exit|stdout|stdin|version)|globalThis|JSON\.\w+|Math\.\w+|Object\.\w+\(|Array\.\w+\(|Promise\.\w+|document\.\w|window\.\w|Number\()/g,
  ),
  rule(4, /\b(?:if|for|while|switch|catch)[ \t]*\((?!\()[^\n]*\)[ \t]*\{/g),
  rule(4, /^[ \t]*(?:\/\/|\/\*)/gm),
  rule(3, /(?:^|[;{(]\s*)let\s+[\w$[{]/gm),
  rule(3, /===|!==|\?\?|\?\.\w/g),
  rule(3, /\b(?:new\s+[A-Z]\w*|throw\s+\w)/g),
  rule(3, /^[ \t]*\}[ \t]*(?:else|catch|finally)\b/gm),
  rule(3, /\.(?:then|forEach|push|slice|concat|includes|length)\b/g),
  rule(3, /\b(?:setTimeout|setInterval|fetch)\s*\(/g),
  rule(2, /`\$`/g),
  rule(2, /\b(?:undefined|null|typeof|instanceof|this\.)\b/g),
  rule(2, /[^;\s];[ \t]*$/gm),
  rule(1, /\bfunction\s+\w+\s*\(\s*\)\s*\{/g),
  rule(1, /^[A-Za-z_$][\w$.]*\s+[-+*/]?=\s+\S/gm),
  rule(1, /\b(?:async|await)\s/g),
  rule(1, /\w\+\+|\w--(?=[;)])/g),
  rule(-3, /^[ \t]*#(?!!|\w+\s*[=;(])/gm),
]

/** `<…>`, with others inside to a depth of three. No character can be read in two ways. */
const GENERIC = [1, 2, 3].reduce((inner) => `<(?:=>|[^;{}<>=\\n]|=(?!>)${inner && `|${inner}`}){0,100}>`, '')
const TYPE = `(?:(?:readonly\\s+)?(?:string|number|boolean|void|any|unknown|never|object|bigint|symbol|null|undefined|[A-Z][\\w.]*(?:${GENERIC})?)(?:\\[\\]){0,8})`
const TYPES = `${TYPE}(?:\\s*[|&]\\s*${TYPE}){0,8}`

/** What TypeScript has and JavaScript has not. Each speaks for JavaScript too, whose syntax surrounds it. */
export const TYPESCRIPT: readonly Rule[] = [
  rule(
    6,
    /^[ \t]*(?:export\s+|declare\s+){0,2}interface\s+[A-Za-z_$][\w$]*(?:<[^\n{]*>)?(?:\s+extends\s+[^\n{]+)?\s*\{/gm,
  ),
  rule(6, /^[ \t]*(?:export\s+|declare\s+){0,2}type\s+[A-Za-z_$][\w$]*(?:<[^\n=]*>)?\s*=[^=]/gm),
  rule(6, /^[ \t]*(?:export\s+|declare\s+|const\s+){0,3}enum\s+[A-Za-z_$][\w$]*\s*\{/gm),
  rule(6, /^[ \t]*(?:import|export)\s+type\s+[\w{*]/gm),
  rule(6, /^[ \t]*(?:export\s+)?declare\s+(?:const|let|var|function|class|module|namespace|global)\b/gm),
  rule(6, /^[ \t]*(?:export\s+)?(?:abstract\s+class|namespace)\s+[A-Za-z_$][^\n]*\{/gm),
  rule(6, new RegExp(`\\b(?:const|let|var)\\s+[\\w$]+\\s*:\\s*(?:${TYPES}|\\{|\\[|\\()`, 'g')),
  rule(6, new RegExp(`\\)\\s*:\\s*(?:asserts\\s|\\w+\\s+is\\s)?${TYPES}\\s*(?:\\{|=>)`, 'g')),
  rule(
    5,
    new RegExp(
      `[(,]\\s*(?:\\.\\.\\.)?[\\w$]+\\?\\s*:\\s*${TYPES}|[(,]\\s*(?:\\.\\.\\.)?[\\w$]+\\s*:\\s*${TYPES}\\s*(?:[,=][^{}\\n]*)?\\)\\s*(?:=>|\\{|:)`,
      'g',
    ),
  ),
  rule(
    5,
    /^[ \t]*(?:public|private|protected|readonly)\s+(?:static\s+|readonly\s+|async\s+){0,3}[\w$]+\s*[?!]?\s*[:(=;]/gm,
  ),
  rule(
    5,
    new RegExp(
      `\\S[ \\t]+(?:as|satisfies)[ \\t]+(?:const\\b|unknown\\b|any\\b|${TYPE}[ \\t]*(?:$|[;)\\].|&]))`,
      'gm',
    ),
  ),
  rule(5, /\bfunction\s+[\w$]*\s*<[A-Z][^()\n]*>\s*\(|=\s*<[A-Z]\w*(?:\s+extends\s[^()\n]*)?,?>\s*\(/g),
  rule(5, /[(,]\s*(?:public|private|protected|readonly)\s+[A-Za-z_$]/g),
  rule(5, /\bnew\s+[A-Z]\w*<[^()\n]+>\s*\(/g),
]

/** What a line of a shell begins with, as long as nothing follows that makes a name or a call of it. */
const COMMANDS =
  'alias|apk|apt|apt-get|awk|base64|basename|bash|bun|bunx|cargo|cat|cd|chmod|chown|cmake|cp|crontab|curl|cut|date|dd|declare|' +
  'deno|df|diff|dirname|dnf|docker|dpkg|du|echo|env|eval|exec|exit|file|find|free|gcc|git|go|grep|egrep|gunzip|gzip|head|hostname|' +
  'id|ifconfig|ip|java|jq|kill|kubectl|less|ln|local|ls|lsof|make|md5sum|mkdir|mktemp|mount|mv|nc|netstat|node|nohup|npm|npx|openssl|' +
  'perl|php|ping|pip|pip3|pkill|pnpm|popd|printenv|printf|ps|psql|pushd|pwd|python|python3|read|readlink|readonly|realpath|rm|rmdir|rsync|ruby|' +
  'scp|sed|seq|service|set|sh|sha256sum|shift|shopt|shuf|sleep|sort|source|split|sqlite3|ssh|stat|su|sudo|systemctl|tac|tail|tar|tee|' +
  'test|time|timeout|top|touch|tr|trap|tree|true|type|ulimit|umask|uname|uniq|unset|unzip|uptime|uv|wait|wc|wget|which|whoami|xargs|yarn|yes|yum|zip|zsh'
const FOLLOWS =
  '(?=[ \\t]*(?:$|[;|&<>)])|[ \\t]+(?![-+*/%|&<>=!]?=|\\(|\\.\\w|in\\b|is\\b|and\\b|or\\b|if\\b))'

export const SHELL: readonly Rule[] = [
  rule(4, new RegExp(`^[ \\t]*(?:[A-Za-z_]\\w*=\\S*[ \\t]+)*(?:${COMMANDS})${FOLLOWS}`, 'gm')),
  rule(
    4,
    new RegExp(`(?:[|;&]|\\(\\)[ \\t]*\\{|\\$\\(|\\b(?:then|do|else))[ \\t]*(?:${COMMANDS})${FOLLOWS}`, 'gm'),
  ),
  rule(6, /^[ \t]*function\s+[\w-]+\s*\{/gm),
  rule(6, /\bfor\s+\w+\s+in\b[^\n:]*(?:;|\n)\s*do\b/g),
  rule(5, /^[ \t]*export\s+[A-Za-z_]\w*(?:=|[ \t]*$)/gm),
  rule(5, /^[ \t]*(?:if|elif|while|until)[ \t]+(?:\[|!|test\b|\(\(|command\b)/gm),
  rule(5, /(?:^|[;\s])(?:fi|done|esac)[ \t]*(?=$|[;|&<>)])/gm),
  rule(4, /(?:^|;)[ \t]*(?:then|do(?![ \t]*\{))(?=\s|$)/gm),
  rule(5, />[ \t]*\/dev\/null|\d?>&\d|&>|<<[-~]?\s*['"]?[A-Za-z_]\w*['"]?|<<</g),
  rule(4, /^[\w-]+[ \t]*\(\)(?:[ \t]*\n?[ \t]*\{|[ \t]+\()/gm),
  rule(4, /^[ \t]*(?:\[{1,2}[ \t].*\]|\(\(.*\)\))/gm),
  rule(4, /;;[ \t]*$|^[ \t]*case[ \t]+\S+[ \t]+in\b|\bfor[ \t]*\(\(/gm),
  rule(4, /^[ \t]*(?:\.{1,2}|~)?\/[\w./-]+(?=[ \t]|$)/gm),
  rule(4, /^[ \t]*\.[ \t]+[\w./~-]+[ \t]*$/gm),
  rule(3, /(?:^|[^\w`])\$(?:[A-Za-z_]\w*(?!\s*[=.([])|\{[\w#!]|\((?!["'`])|[@#?*!1-9$])/gm, 'quoted'),
  rule(
    3,
    /^[ \t]*(?!return|yield|await|print|typeof|not|assert|del|raise|throw|case|new|if|while|else|in|lambda)[a-z][\w.+-]*[ \t]+(?:[^\s=(]+[ \t]+)*--?[A-Za-z][\w-]*/gm,
  ),
  rule(2, /^[ \t]*[A-Za-z_]\w*=(?:[^\s=>]|$)/gm),
  rule(2, /[ \t]\|[ \t]*[a-z][\w.-]*(?=[ \t]|$)/gm),
  rule(2, /\\$/gm),
  rule(1, /\bfunction\s+\w+\s*\(\s*\)\s*\{/g),
  rule(1, /^[ \t]*#/gm),
  rule(-4, /^[ \t]*\/\//gm),
]
