//! Where tests stand and how they look, by language: rules of thumb about text.

use std::sync::LazyLock;

use checkrein_shared::tree::RelPath;
use regex::Regex;

use crate::globs::Globs;

/// Where tests usually stand.
pub(super) static TEST_PATHS: LazyLock<Globs> = LazyLock::new(|| {
    Globs::known(&[
        "**/test/**",
        "**/tests/**",
        "**/spec/**",
        "**/specs/**",
        "**/__tests__/**",
        "**/testdata/**",
        "**/test.sh",
        "**/test_*",
        "**/*_test.*",
        "**/*_tests.*",
        "**/tests.rs",
        "**/*.test.*",
        "**/*.spec.*",
        "**/*_spec.rb",
        "**/*Test.java",
        "**/*Tests.java",
        "**/*Test.kt",
        "**/*Tests.cs",
        "**/*Test.php",
        "**/*.bats",
        "**/conftest.py",
    ])
});

/// What one kind of file calls an assertion, and how it skips a test.
pub(super) struct Language {
    endings: &'static [&'static str],
    assertion: Regex,
    skip: Regex,
}

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let language = |endings, assertion, skip| Language { endings, assertion: known(assertion), skip: known(skip) };
    vec![
        language(
            &["rs"],
            r"\bassert\w*!|#\[(\w+::)?test\b|#\[should_panic|\bprop_assert|\bpanic!",
            r"#\[ignore\b|#\[cfg\(any\(\)\)\]",
        ),
        language(
            &["py"],
            r"\bassert\b|\.assert\w+\(|pytest\.raises|\bdef test_",
            r"@(pytest\.mark\.(skip|skipif|xfail)|unittest\.(skip|expectedFailure))|pytest\.(skip|xfail)\(|\.skipTest\(",
        ),
        language(
            &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"],
            r"\bexpect\(|\bassert\b|\.should\b|\b(it|test)\(",
            r"\b(it|test|describe|suite|context)\.(skip|todo|only|fixme)\b|\b(xit|xdescribe|xtest|fit|fdescribe)\(",
        ),
        language(
            &["go"],
            r"\bt\.(Error|Fatal|Fail)|\b(assert|require)\.\w|\bfunc Test",
            r"\bt\.Skip|//go:build ignore",
        ),
        language(
            &["java", "kt", "kts", "scala", "groovy", "cs"],
            r"\b[aA]ssert\w*[.(]|\bverify\(|@Test\b|\[(Fact|Test|Theory)\b|\bshould\w*\(",
            r"@(Disabled|Ignore)\b|\[Ignore\b|Skip\s*=",
        ),
        language(
            &["rb"],
            r"\bexpect\b|\bassert_|\brefute_|\bshould\b|\bit ['\x22]",
            r"\b(xit|xdescribe|xcontext|pending|skip)\b",
        ),
        language(
            &["sh", "bash", "zsh", "bats", "t"],
            r"\[ |\[\[ |\btest |\bassert|\bexit [1-9]|\bgrep -q|\bdiff\b|\bcmp\b|\|\| (fail|die|exit [1-9])|\breturn [1-9]|\bset -\w*e",
            r"\|\|\s*(true|:)\s*(#.*)?$|^\s*exit 0\s*(#.*)?$|\bset \+e\b|^\s*skip\b",
        ),
        language(&["php"], r"->assert\w+\(|\bassert\(|\bexpect", r"markTest(Skipped|Incomplete)\("),
    ]
});

/// Lines of shell scripts that tidy up and may fail.
static TIDYING: LazyLock<Regex> = LazyLock::new(|| known(r"^\s*(rm|rmdir|mkdir|kill|pkill|wait|umount|trap|cd)\b"));

impl Language {
    /// Whether tests stand beside the code.
    pub(super) fn has_inline_tests(&self) -> bool {
        self.endings.contains(&"rs")
    }

    /// Whether a line looks like an assertion.
    pub(super) fn asserts(&self, line: &str) -> bool {
        self.assertion.is_match(line)
    }

    /// Whether a line looks like skipping a test.
    pub(super) fn skips(&self, line: &str) -> bool {
        let tidies = self.endings.contains(&"sh") && TIDYING.is_match(line);
        self.skip.is_match(line) && !tidies
    }
}

/// For files of no known language, in places where tests usually stand.
pub(super) static ANY: LazyLock<Language> = LazyLock::new(|| Language {
    endings: &[],
    assertion: known(r"(?i)\bassert|\bexpect"),
    skip: known(r"(?i)\b(skip|disabled|ignore)(_?test|\b\s*[(:=])"),
});

fn known(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns in this source code compile, as its tests show")
}

pub(super) fn language_of(path: &RelPath) -> Option<&'static Language> {
    let name = String::from_utf8_lossy(path.name()).into_owned();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending)?;
    LANGUAGES.iter().find(|language| language.endings.contains(&ending))
}
