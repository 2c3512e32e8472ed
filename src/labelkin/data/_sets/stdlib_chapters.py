"""The modules of Python's standard library by chapter of the library reference, for the dataset `stdlib`.

Chapters are those of the reference of Python 3.11, which leaves modules removed later in "superseded"; modules that came later
stand in the chapter that lists them. Modules without functions in Python source are left out.
"""

# Chapter -> its modules. A package stands for all its files, except those of a submodule that is listed itself.
CHAPTERS: dict[str, str] = {
    "text processing": "string re difflib textwrap stringprep rlcompleter",
    "binary data": "struct codecs",
    "data types": """datetime zoneinfo calendar collections collections.abc heapq bisect weakref types copy pprint reprlib enum
        graphlib""",
    "numeric and mathematical": "numbers decimal fractions random statistics",
    "functional programming": "functools operator",
    "file and directory access": "pathlib os.path fileinput stat filecmp tempfile glob fnmatch linecache shutil",
    "data persistence": "pickle copyreg shelve dbm sqlite3",
    "data compression and archiving": "gzip bz2 lzma zipfile tarfile compression",
    "file formats": "csv configparser tomllib netrc plistlib",
    "cryptography": "hashlib hmac secrets",
    "operating system": "os io time argparse getopt logging logging.config logging.handlers getpass curses platform ctypes",
    "concurrent execution": """threading multiprocessing multiprocessing.shared_memory concurrent.futures
        concurrent.interpreters subprocess sched queue""",
    "networking and interprocess communication": "asyncio socket ssl selectors signal",
    "internet data handling": "email json mailbox mimetypes base64 quopri",
    "structured markup": "html html.parser xml.etree.ElementTree xml.dom xml.dom.minidom xml.dom.pulldom xml.sax",
    "internet protocols": """webbrowser wsgiref urllib.request urllib.response urllib.parse urllib.error urllib.robotparser http
        http.client ftplib poplib imaplib smtplib uuid socketserver http.server http.cookies http.cookiejar xmlrpc.client
        xmlrpc.server ipaddress""",
    "multimedia": "wave colorsys",
    "internationalization": "gettext locale",
    "program frameworks": "turtle cmd shlex",
    "graphical interfaces with Tk": "tkinter tkinter.ttk tkinter.tix",
    "development tools": "typing pydoc doctest unittest unittest.mock lib2to3",
    "debugging and profiling": "bdb pdb profile cProfile pstats timeit trace tracemalloc",
    "packaging and distribution": "distutils ensurepip venv zipapp",
    "runtime services": """sys sysconfig warnings dataclasses contextlib abc traceback inspect annotationlib site __future__
        atexit""",
    "custom interpreters": "code codeop",
    "importing modules": "zipimport pkgutil modulefinder runpy importlib importlib.resources importlib.metadata",
    "language services": "ast symtable token tokenize tabnanny pyclbr py_compile compileall dis pickletools",
    "Unix services": "tty pty",
    "superseded": """aifc asynchat asyncore cgi cgitb chunk crypt imghdr imp mailcap nntplib optparse pipes smtpd sndhdr sunau
        telnetlib uu xdrlib""",
}
# Module of each chapter: name -> chapter.
MODULES = {module: chapter for chapter, modules in CHAPTERS.items() for module in modules.split()}
# Files that implement a module under another name.
IMPLEMENTED_BY = {
    "_collections_abc": "collections.abc",
    "_py_abc": "abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
    "_pyio": "io",
    "_sitebuiltins": "site",
    "_strptime": "time",
    "_threading_local": "threading",
    "_weakrefset": "weakref",
    "genericpath": "os.path",
    "ntpath": "os.path",
    "opcode": "dis",
    "posixpath": "os.path",
    "xml.etree": "xml.etree.ElementTree",
}
